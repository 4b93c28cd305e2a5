"""Parts of every process of the service: memory, periodic work, and its end."""
