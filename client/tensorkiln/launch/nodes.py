"""The expressions of a launch size. A node compares by value and may be shared by several parents."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pydantic import model_validator

from ..dtypes import DType
from ..nodes.base import Record


class Variable(Record):
    """A value given at the call, within `min`..`max` inclusive."""

    name: str
    min: int
    max: int

    @model_validator(mode="after")
    def _bounds_are_ordered(self) -> Variable:
        if self.min > self.max:
            raise ValueError(f"variable {self.name} has the empty bounds [{self.min}, {self.max}]")
        return self


class BinaryOp(StrEnum):
    """Idiv, Mod, CDiv and CMod truncate toward zero; FloorDiv and FloorMod round down."""

    ADD = "Add"
    SUB = "Sub"
    MUL = "Mul"
    IDIV = "Idiv"
    MOD = "Mod"
    MAX = "Max"
    FLOOR_DIV = "FloorDiv"
    FLOOR_MOD = "FloorMod"
    CDIV = "CDiv"
    CMOD = "CMod"
    POW = "Pow"
    SHL = "Shl"
    SHR = "Shr"
    AND = "And"
    OR = "Or"
    XOR = "Xor"
    LT = "Lt"
    LE = "Le"
    EQ = "Eq"
    NE = "Ne"
    GT = "Gt"
    GE = "Ge"
    FDIV = "Fdiv"
    THREEFRY = "Threefry"


class UnaryOp(StrEnum):
    NEG = "Neg"
    ABS = "Abs"
    NOT = "Not"
    SIGN = "Sign"
    SQUARE = "Square"
    TRUNC = "Trunc"
    FLOOR = "Floor"
    CEIL = "Ceil"
    ROUND = "Round"
    SQRT = "Sqrt"
    RSQRT = "Rsqrt"
    EXP2 = "Exp2"
    LOG2 = "Log2"
    SIN = "Sin"
    RECIPROCAL = "Reciprocal"


class TernaryOp(StrEnum):
    """MulAcc(a, b, c) is `a * b + c`; Where(c, a, b) is `a` where `c` is not zero, else `b`."""

    MULACC = "MulAcc"
    WHERE = "Where"


@dataclass(frozen=True)
class LaunchNode:
    """A node of a kernel's expression graph."""

    @property
    def op(self) -> str:
        """The name of the operation, as error messages print it."""
        return type(self).__name__

    @property
    def sources(self) -> tuple[LaunchNode, ...]:
        """The operands, in order."""
        return ()


@dataclass(frozen=True)
class Const(LaunchNode):
    """A constant; a launch size accepts integers and booleans only."""

    value: bool | int | float


@dataclass(frozen=True)
class DefineVar(LaunchNode):
    """A variable of the kernel with its inclusive bounds."""

    name: str
    min_val: int
    max_val: int


@dataclass(frozen=True)
class Bind(LaunchNode):
    """`var` fixed to `value`."""

    var: LaunchNode
    value: LaunchNode

    @property
    def sources(self) -> tuple[LaunchNode, ...]:
        return (self.var, self.value)


@dataclass(frozen=True)
class Unary(LaunchNode):
    kind: UnaryOp
    source: LaunchNode

    @property
    def sources(self) -> tuple[LaunchNode, ...]:
        return (self.source,)


@dataclass(frozen=True)
class Binary(LaunchNode):
    kind: BinaryOp
    left: LaunchNode
    right: LaunchNode

    @property
    def sources(self) -> tuple[LaunchNode, ...]:
        return (self.left, self.right)


@dataclass(frozen=True)
class Ternary(LaunchNode):
    kind: TernaryOp
    first: LaunchNode
    second: LaunchNode
    third: LaunchNode

    @property
    def sources(self) -> tuple[LaunchNode, ...]:
        return (self.first, self.second, self.third)


@dataclass(frozen=True)
class Cast(LaunchNode):
    """Transparent in a launch size: nothing is truncated, whatever `dtype` is."""

    source: LaunchNode
    dtype: DType

    @property
    def sources(self) -> tuple[LaunchNode, ...]:
        return (self.source,)


@dataclass(frozen=True)
class BitCast(LaunchNode):
    """Transparent in a launch size."""

    source: LaunchNode
    dtype: DType

    @property
    def sources(self) -> tuple[LaunchNode, ...]:
        return (self.source,)


@dataclass(frozen=True)
class After(LaunchNode):
    """`passthrough`, once `dependencies` have happened; transparent in a launch size."""

    passthrough: LaunchNode
    dependencies: tuple[LaunchNode, ...] = ()

    @property
    def sources(self) -> tuple[LaunchNode, ...]:
        return (self.passthrough, *self.dependencies)
