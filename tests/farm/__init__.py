"""The topology of a farm as processes of this machine: `python -m tests.farm`, and the fixture of the fault tests."""
