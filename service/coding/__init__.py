"""Content codings (RFC 9110 section 8.4): what bodies may be sent in, and what answers are sent in."""
