"""Histories of a farm in simulated time: the real code, with a store, clocks and chance that are given to it."""
