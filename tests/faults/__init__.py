"""What a farm survives, with figures: at a size for every day, or with KILN_FAULTS=full at that of the requirements."""
