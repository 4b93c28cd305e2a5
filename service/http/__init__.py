"""Requests and answers: bodies, headers, errors, and the memory and connections that they take."""
