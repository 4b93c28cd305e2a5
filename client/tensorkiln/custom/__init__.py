"""Operations beyond the 45 node kinds, by name. `registered()` lists them with their documentation."""

from .registry import Attribute, CustomOp, CustomOpError, lookup, register, registered
from .sort import SORT

register(SORT)

__all__ = ["Attribute", "CustomOp", "CustomOpError", "lookup", "register", "registered"]
