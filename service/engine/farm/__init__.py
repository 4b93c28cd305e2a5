"""The back end that is a farm: a service writes orders to the store, and workers take them from there."""
