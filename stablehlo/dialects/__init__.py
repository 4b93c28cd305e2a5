"""Modules that the bindings look for when they meet an operation of a dialect, each time until they find one."""
