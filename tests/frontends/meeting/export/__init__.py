"""What writes the files, by hand: JAX and torch are no dependencies."""
