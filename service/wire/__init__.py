"""The content of requests and answers, for both sides of the sandbox: the service and the processes in it."""
