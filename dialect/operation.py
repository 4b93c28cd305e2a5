"""The base of every kiln op: the dialect, fields besides operands, and the creation of ops."""

# The bindings read the annotations of an op's class as objects, so no `from __future__ import annotations` here or in
# the op families.

from collections.abc import Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Any

from tensorkiln.types import TensorType

from .fields import Field
from .mlir import ext, ir
from .rules import same_type
from .types import tensor_type, type_of

MAX_RUNS = 16
"""Most runs of operands of equal type of a `MixedOperandsOp`."""

_SEGMENTS = "operandSegmentSizes"


class Kiln(ext.Dialect, name="kiln"):
    """The dialect of the tensor graph: one op per node kind of the wire format, of the same name."""


class KilnOp(Kiln.Operation):
    """An op whose class body declares operands and results by annotation, and attributes as fields.

    Operands have the names of the node's vars without `_var`; `in_var` is `source`. Dtypes and shapes are not
    attributes, since the result's type has them: use `tensor`.
    """

    # Not annotated, because the bindings treat every annotation as an operand, a result or an attribute.
    fields = MappingProxyType[str, Field[Any]]({})

    def __init_subclass__(cls, *, name: str | None = None, traits: list[type] | None = None) -> None:
        own = {member: value for member, value in vars(cls).items() if isinstance(value, Field)}
        cls.fields = MappingProxyType({**cls.fields, **own})
        # The bindings would replace each field by an accessor of the bare attribute: restore them afterwards.
        for member, field in own.items():
            delattr(cls, member)
            cls.__annotations__[member] = field.constraint
        super().__init_subclass__(name=name, traits=traits)
        for member, field in own.items():
            setattr(cls, member, field)

    @property
    def tensor(self) -> TensorType:
        """The type of the result."""
        return type_of(self.results[0])

    @property
    def inputs(self) -> list[TensorType]:
        """The types of the operands."""
        return [type_of(value) for value in self.operands]

    def problem(self) -> str | None:
        """A violation that the dialect's definition does not catch, or None. All types are known to be tensors."""
        return None

    @classmethod
    def make(
        cls,
        operands: Sequence[ir.Value],
        result: TensorType | None,
        *,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
        **fields: Any,
    ) -> ir.Operation:
        """Create the op with one result, or none if `result` is None, and one Python value per field.

        Raises KeyError for an unknown field, and ValueError if the operands have more runs of equal types than the op
        takes. The verifier finds missing fields.
        """
        attributes = {member: cls.encode(member, value, result) for member, value in fields.items()}
        cls.add_segments(attributes, operands)
        results = [] if result is None else [tensor_type(result)]
        return ir.Operation.create(
            cls.OPERATION_NAME, results=results, operands=list(operands), attributes=attributes, loc=loc, ip=ip
        )

    @classmethod
    def encode(cls, member: str, value: Any, result: TensorType | None) -> ir.Attribute:
        """The attribute of the field `member`, in the current context. Raises KeyError for an unknown field."""
        return cls.fields[member].encode(value)

    @classmethod
    def add_segments(cls, attributes: dict[str, ir.Attribute], operands: Sequence[ir.Value]) -> None:
        """Add the attribute with the sizes of operand groups, if the op needs one."""


class IdentityOp(KilnOp):
    """An op whose result is its one operand; any other meaning is a hint."""

    source: ext.Operand[Any]
    result: ext.Result[Any]

    def problem(self) -> str | None:
        return same_type(self.inputs[0], self.tensor)


class MixedOperandsOp(KilnOp):
    """An op with any number of operands of any types.

    In the dialect's definition a variadic group holds operands of one type only, so consecutive operands of equal type
    form a run, and there are `MAX_RUNS` groups for them. `values` are all of them in order.
    """

    __annotations__ = {f"run_{index}": Sequence[ext.Operand[Any]] for index in range(MAX_RUNS)}

    @property
    def values(self) -> tuple[ir.Value, ...]:
        return tuple(self.operands)

    @classmethod
    def add_segments(cls, attributes: dict[str, ir.Attribute], operands: Sequence[ir.Value]) -> None:
        lengths = [len(run) for run in runs_of_equal_type(operands)]
        if len(lengths) > MAX_RUNS:
            raise ValueError(
                f"{cls.OPERATION_NAME} takes {MAX_RUNS} runs of operands of equal type, not {len(lengths)}"
            )
        attributes[_SEGMENTS] = ir.DenseI32ArrayAttr.get(lengths + [0] * (MAX_RUNS - len(lengths)))


def runs_of_equal_type(operands: Sequence[ir.Value]) -> list[list[ir.Value]]:
    """The operands, cut where the type changes."""
    return [list(run) for _, run in groupby(operands, key=lambda value: value.type)]
