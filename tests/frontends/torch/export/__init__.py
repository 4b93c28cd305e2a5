"""Modules and functions as PyTorch exports them, with what PyTorch computes: by hand, where PyTorch is installed."""
