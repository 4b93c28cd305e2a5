"""Fair sharing of the machine among tenants, by the cost of their work."""
