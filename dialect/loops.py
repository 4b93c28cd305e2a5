"""Loops with a run-time number of iterations: their graphs are attributes, and each result is an op of its own."""

from typing import Any

from tensorkiln.dtypes import DType
from tensorkiln.nodes import Region
from tensorkiln.types import TensorType

from .fields import Field, integer
from .mlir import ext, ir
from .operation import KilnOp, MixedOperandsOp
from .remembered import Remembered

TURNS = TensorType(DType.UINT8, ())
"""The type of the token that a finished loop returns: it has no value."""


_regions: Remembered[int, Region] = Remembered()
"""By hash of the attribute. Every result of a loop asks for its graphs whenever the module is verified."""


def _encode(region: Region) -> ir.Attribute:
    return ir.StringAttr.get(region.model_dump_json())


def _decode(attribute: Any) -> Region:
    known = _regions.within(attribute.context)
    key = hash(attribute)
    if key not in known:
        known[key] = Region.model_validate_json(attribute.value)
    return known[key]


class WhileOp(MixedOperandsOp, name="while"):
    """Runs the graph `body` on carried values while `condition` gives true, for at most `most` iterations.

    Both graphs are in the wire format. The result only orders: each `kiln.while_result` takes it.
    """

    condition = Field(ir.StringAttr, _encode, _decode, is_shareable=False)
    body = Field(ir.StringAttr, _encode, _decode, is_shareable=False)
    most = integer()
    result: ext.Result[Any]

    def problem(self) -> str | None:
        results = len(self.body.output_vars)
        if not 1 <= results <= len(self.operands):
            return f"it carries {len(self.operands)} values, of which its body gives {results}"
        return None if self.tensor == TURNS else "its result stands for the loop alone"


class WhileResultOp(KilnOp, name="while_result"):
    """The final value of carried value `number` of a loop."""

    loop: ext.Operand[Any]
    number = integer()
    result: ext.Result[Any]

    def problem(self) -> str | None:
        loop = self.operands[0].owner
        if not isinstance(loop, WhileOp):
            return "it is no result of a loop"
        if not 0 <= self.number < len(loop.body.output_vars):
            return f"its loop gives no value {self.number}"
        return None
