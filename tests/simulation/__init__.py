"""Simulated histories of a farm: production code with a simulated store, clock and random numbers."""
