"""Names of a package that are imported when they are first asked for, each from the module that has it.

Who needs one module of a package, a record of the wire for one, does not load all the others.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module

from .uncollected import uncollected


def on_first_use(package: str, modules: Mapping[str, str]) -> Callable[[str], object]:
    """The `__getattr__` of `package`; `modules` has the names that each module defines, with blanks between them."""
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def get(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with uncollected():
            value = getattr(import_module(f".{homes[name]}", package), name)
        setattr(sys.modules[package], name, value)
        return value

    return get
