"""Maintenance of a store by a command: verification, and purging of a build or a tenant."""
