"""A process of the service: its command line, start, sockets, workers and end."""
