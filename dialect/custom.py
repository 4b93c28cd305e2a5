"""Operations outside the set, found by name in `tensorkiln.custom`."""

from collections.abc import Sequence
from typing import Any

from tensorkiln.nodes import CustomAttr

from .fields import Field, decode_dims, encode_dims, text
from .mlir import ext, ir
from .operation import MixedOperandsOp


def _encode_attribute(attribute: CustomAttr) -> ir.Attribute:
    value: Any = attribute.value
    match attribute.kind:
        case "int":
            encoded = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
        case "float":
            encoded = ir.FloatAttr.get(ir.F64Type.get(), value)
        case "string":
            encoded = ir.StringAttr.get(value)
        case "shape":
            encoded = encode_dims(value)
    entries = {"name": attribute.name, "kind": attribute.kind}
    return ir.DictAttr.get({**{key: ir.StringAttr.get(text) for key, text in entries.items()}, "value": encoded})


def _decode_attribute(attribute: Any) -> CustomAttr:
    kind, value = attribute["kind"].value, attribute["value"]
    return CustomAttr.model_construct(
        name=attribute["name"].value, kind=kind, value=decode_dims(value) if kind == "shape" else value.value
    )


def _encode(attributes: Sequence[CustomAttr]) -> ir.Attribute:
    return ir.ArrayAttr.get([_encode_attribute(attribute) for attribute in attributes])


def _decode(attributes: Any) -> tuple[CustomAttr, ...]:
    return tuple(_decode_attribute(attribute) for attribute in attributes)


class CustomOp(MixedOperandsOp, name="custom", traits=[ext.Pure]):
    """The registered operation `op_name` of the values; every op already has a member called `attributes`."""

    op_name = text()
    custom_attributes = Field(ir.ArrayAttr, _encode, _decode, is_shareable=False)
    result: ext.Result[Any]
