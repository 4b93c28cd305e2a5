"""Displays of graphs, programs and their parts: `repr` lines, and HTML tables for notebooks.

The records call these functions. To avoid import cycles, the functions only read the records' fields.
"""
