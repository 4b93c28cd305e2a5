"""What every process of the service does: its memory, what it repeats, its end."""
