"""Metrics, logs and traces of the service. Nothing that a user wrote is in any of them."""
