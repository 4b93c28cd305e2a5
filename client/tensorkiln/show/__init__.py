"""Displays of graphs, programs and their parts: `repr` lines, and HTML tables for notebooks.

The records call these functions, which do not import the record classes and only read their fields.
"""
