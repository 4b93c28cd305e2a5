"""The service as a process: its command line, sockets, workers, application, start and end."""
