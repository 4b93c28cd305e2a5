"""The keys by which this service vouches for what it compiled: made, kept, rotated, and applied."""
