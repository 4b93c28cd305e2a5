"""From the body of a request to the body of its answer: look it up, or run the jobs that make it."""
