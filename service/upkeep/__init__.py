"""Maintenance of a store: eviction, verification, and purging of a build or a tenant."""
