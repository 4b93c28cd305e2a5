"""What requests and answers say, on both sides of the sandbox: the service and the process that reads what was sent."""
