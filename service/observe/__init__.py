"""What an operator sees of the service: figures, log lines and traces. Nothing that a user wrote is in any of them."""
