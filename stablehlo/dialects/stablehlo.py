"""The bindings have no classes for the operations of StableHLO, which are read by name; now they know that."""
