"""Tenants share the machine by what their work costs; none can keep the others waiting."""
