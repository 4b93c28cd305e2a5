"""Turns the body of a request into the body of its answer: from the store, or by tasks that compute it."""
