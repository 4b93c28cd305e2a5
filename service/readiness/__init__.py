"""Whether compiles can be sent here."""
