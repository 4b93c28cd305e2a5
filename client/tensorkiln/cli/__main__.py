"""`python -m tensorkiln.cli` is `kiln`."""

from . import main

main()
