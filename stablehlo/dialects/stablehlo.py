"""Deliberately empty: operations are read by name and need no classes. Its presence ends the bindings' search."""
