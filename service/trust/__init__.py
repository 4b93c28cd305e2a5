"""The keys that sign compiled programs: made, stored, rotated, and applied."""
