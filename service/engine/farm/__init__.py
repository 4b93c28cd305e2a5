"""The engine that is a farm: orders are written to the store and announced over Celery, workers carry them out."""
