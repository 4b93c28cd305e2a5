"""Import of tinygrad tensors and functions as graphs. Needs tinygrad: install `tensorkiln[tinygrad]`."""

from typing import TYPE_CHECKING

from ...on_first_use import on_first_use

if TYPE_CHECKING:
    from .compiled_functions import Jitted as Jitted
    from .compiled_functions import jit as jit
    from .from_tensors import model as model
    from .operations import FAMILIES as FAMILIES
    from .operations import OPERATIONS as OPERATIONS

__getattr__ = on_first_use(
    __name__, {"compiled_functions": "Jitted jit", "from_tensors": "model", "operations": "FAMILIES OPERATIONS"}
)

__all__ = ["FAMILIES", "OPERATIONS", "Jitted", "jit", "model"]
