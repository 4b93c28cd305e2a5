"""Importers: convert models of other formats to graphs and parameters."""
