"""Symbols: integers that each call provides by name."""

from typing import Any

from tensorkiln.nodes import SymVar

from .fields import Field, integer
from .mlir import ext, ir
from .operation import KilnOp
from .rules import has_rank


def symbol_attribute(symbol: SymVar) -> ir.Attribute:
    """`{name, min_val, max_val}`."""
    int64 = ir.IntegerType.get_signless(64)
    return ir.DictAttr.get(
        {
            "name": ir.StringAttr.get(symbol.name),
            "min_val": ir.IntegerAttr.get(int64, symbol.min_val),
            "max_val": ir.IntegerAttr.get(int64, symbol.max_val),
        }
    )


def symbol_of(attribute: Any) -> SymVar:
    return SymVar(name=attribute["name"].value, min_val=attribute["min_val"].value, max_val=attribute["max_val"].value)


class DefineVarOp(KilnOp, name="define_var", traits=[ext.Pure]):
    """The value of a symbol as a scalar."""

    sym_var = Field(ir.DictAttr, symbol_attribute, symbol_of)
    result: ext.Result[Any]

    def problem(self) -> str | None:
        return has_rank(self.tensor, 0, "the result")


class BindOp(KilnOp, name="bind", traits=[ext.Pure]):
    """Fixes the symbol that `sym` defines; the result is `value`."""

    sym: ext.Operand[Any]
    value = integer()
    result: ext.Result[Any]

    def problem(self) -> str | None:
        return has_rank(self.tensor, 0, "the result")
