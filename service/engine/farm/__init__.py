"""The engine that is a farm: a service writes orders into the store, and workers take them from there."""
