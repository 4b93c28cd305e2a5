"""Values given in the graph itself."""

from typing import Any

import numpy as np

from tensorkiln.types import TensorType

from .fields import Field
from .literals import scalar_attribute, scalar_value, table_array, table_attribute
from .mlir import ext, ir
from .operation import KilnOp
from .rules import has_rank


def _as_it_is(value: Any) -> Any:
    return value


class ConstScalarOp(KilnOp, name="const_scalar", traits=[ext.Pure]):
    """A scalar. `value` is a float, an int or a bool, rounded to the dtype, or None for unit."""

    value = Field(Any, _as_it_is, scalar_value, is_shareable=False)
    result: ext.Result[Any]

    @classmethod
    def encode(cls, member: str, value: Any, result: TensorType | None) -> ir.Attribute:
        assert result is not None, "a constant has a result"
        return scalar_attribute(value, result.dtype)

    def problem(self) -> str | None:
        return has_rank(self.tensor, 0, "the result")


class VconstOp(KilnOp, name="vconst", traits=[ext.Pure]):
    """A small table, in row-major order."""

    values = Field(Any, _as_it_is, _as_it_is, is_shareable=False)
    result: ext.Result[Any]

    @classmethod
    def encode(cls, member: str, value: Any, result: TensorType | None) -> ir.Attribute:
        assert result is not None, "a constant has a result"
        return table_attribute(value, result)

    @property
    def array(self) -> np.ndarray[Any, np.dtype[Any]]:
        """The table in its dtype and shape."""
        return table_array(self.values, self.tensor)
