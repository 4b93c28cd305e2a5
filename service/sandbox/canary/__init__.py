"""A process that attempts, in earnest, what a confined one must not be able to do, and what it must be able to."""
