"""Importers: models of other formats as graphs and parameters."""
