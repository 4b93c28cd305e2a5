"""Composed graphs, and what is asked of each: the reference, another target, and no fusion agree on its results."""
