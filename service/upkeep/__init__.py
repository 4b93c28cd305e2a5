"""Care of a store: what is kept within bounds, verified, and removed for a build or a tenant."""
