"""Reader for `.pt2` archives of `torch.export.save`, without torch: the graph is JSON, the weights are bytes."""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn, TypeAlias

from ...dtypes import DType
from ...errors import InvalidGraphError, UnsupportedGraphError
from ...expr import Dim
from ...stored_entries import UNREADABLE, StoredEntries
from .archived_arrays import arrays_of
from .archived_trees import tree_of
from .element_types import BY_NUMBER, dtype_named
from .exported import CHECK, Argument, Exported, Input, Literal, Operation, Output, Ref, Role, TensorType, ValueType
from .lines import user_line
from .sizes import is_dense, is_symbol, size

SCHEMA_MAJOR: Final = 8
"""The supported major version of the schema of `torch.export`; torch 2.13 writes 8.20."""
MAX_GRAPH_BYTES: Final = 1 << 28
"""The most bytes of the JSON text of a graph."""

_UNREADABLE: Final = (
    *UNREADABLE,
    *(OverflowError, ValueError, TypeError, LookupError, AttributeError, StopIteration),
)
"""Exceptions of the standard library for invalid archives, and for records that violate the schema."""

Json: TypeAlias = "dict[str, Any]"
Source: TypeAlias = "str | os.PathLike[str] | BinaryIO"


def read_archive(source: Source) -> Exported:
    """The one program of an archive: the file, or a stream of it.

    InvalidGraphError when this is not such an archive, or is damaged; UnsupportedGraphError for another schema, for
    several programs in one archive, and for weights that only torch can unpickle. OSError when a file cannot be opened.
    """
    if not isinstance(source, str | os.PathLike):
        return _of_stream(source, "the stream")
    # A failure to open is raised as OSError. An OSError after that, such as a bad seek, comes from invalid content.
    with open(source, "rb") as file:
        return _of_stream(file, os.fspath(source))


def _of_stream(stream: BinaryIO, called: str) -> Exported:
    try:
        with zipfile.ZipFile(stream) as archive:
            return _read(StoredEntries(archive, called), called)
    except (*_UNREADABLE, OSError) as error:
        raise InvalidGraphError(f"{called} cannot be read as an exported program: {error!r}") from error


def _read(archive: StoredEntries, called: str) -> Exported:
    paths = [name for name in archive.paths if name.rpartition("/")[0].endswith("/models")]
    graphs = [name for name in paths if name.endswith(".json")]
    if len(graphs) != 1:
        found = f"{len(graphs)} programs" if graphs else "no program"
        raise InvalidGraphError(f"{called} holds {found}; one is read")
    (path,) = graphs
    record = archive.json_object(path, MAX_GRAPH_BYTES, "graph_bytes")
    _check_byte_order(archive, path.partition("/models/")[0], called)
    version = record["schema_version"]
    if version["major"] != SCHEMA_MAJOR:
        raise UnsupportedGraphError(
            f"{called} is of the schema {version['major']}.{version['minor']}, and {SCHEMA_MAJOR} is read; "
            "pass the ExportedProgram that torch.export.load gives"
        )
    root, name = path.partition("/models/")[0], Path(path).stem
    return _exported(record, name, arrays_of(archive, root, name))


def _check_byte_order(archive: StoredEntries, root: str, called: str) -> None:
    """UnsupportedGraphError for weights in another byte order than this machine's."""
    path = f"{root}/byteorder"
    if path in archive:
        order = archive.content(path).strip()
        if order != sys.byteorder.encode():
            raise UnsupportedGraphError(
                f"{called} is in the byte order {order[:20]!r}, and this machine has {sys.byteorder!r}"
            )


def _exported(record: Json, name: str, arrays: Mapping[str, Any]) -> Exported:
    module = record["graph_module"]
    graph, signature = module["graph"], module["signature"]
    literals: dict[str, Literal] = {}
    inputs = tuple(_input(spec, literals) for spec in signature["input_specs"] if "token" not in spec)
    top = next(entry["signature"] for entry in module["module_call_graph"] if entry["fqn"] == "")
    return Exported(
        name,
        inputs,
        tuple(_operation(node) for node in graph["nodes"] if not _is_check(node)),
        tuple(_output(spec) for spec in signature["output_specs"] if "token" not in spec),
        _types(graph),
        {
            symbol: (_bound(bound["min_val"]) or 0, _bound(bound["max_val"]))
            for symbol, bound in record["range_constraints"].items()
            if is_symbol(symbol)
        },
        arrays,
        tree_of(top["in_spec"]),
        tuple(_text(name) for name in top.get("forward_arg_names") or ()),
        tree_of(top["out_spec"]),
        literals,
    )


def _input(spec: Json, literals: dict[str, Literal]) -> Input:
    ((kind, body),) = spec.items()
    if kind == "user_input":
        ((form, value),) = body["arg"].items()
        name = value.get("name") or value.get("as_name") if isinstance(value, dict) else None
        if not isinstance(name, str):
            raise UnsupportedGraphError(f"an input of the form {form} is not supported")
        return Input(name, Role.USER)
    if kind == "constant_input":
        literals[_text(body["name"])] = _literal(body["value"])
        return Input(body["name"], Role.USER)
    places = {
        "parameter": (Role.PARAMETER, "parameter_name"),
        "buffer": (Role.BUFFER, "buffer_name"),
        "tensor_constant": (Role.CONSTANT, "tensor_constant_name"),
    }
    if kind not in places:
        raise UnsupportedGraphError(f"an input that is a {kind} is not supported")
    role, field = places[kind]
    return Input(_text(body["arg"]["name"]), role, _text(body[field]))


def _output(spec: Json) -> Output:
    ((kind, body),) = spec.items()
    if kind == "user_output":
        return Output(_argument(body["arg"]))
    places = {
        "buffer_mutation": (Role.BUFFER, "buffer_name"),
        "parameter_mutation": (Role.PARAMETER, "parameter_name"),
        "user_input_mutation": (Role.USER, "user_input_name"),
    }
    if kind not in places:
        raise UnsupportedGraphError(f"an output that is a {kind} is not supported")
    role, field = places[kind]
    return Output(_reference(body["arg"]), _text(body[field]), role)


def _is_check(node: Json) -> bool:
    """Whether it raises torch's error for a matrix without a factor. Tokens order such checks, and nothing else."""
    called = [entry["arg"].get("as_operator") for entry in node["inputs"]]
    return node["target"] == "torch.ops.higher_order.with_effects" and f"torch.ops.{CHECK}" in called


def _operation(node: Json) -> Operation:
    arguments = {_text(entry["name"]): _argument(entry["arg"]) for entry in node["inputs"]}
    results: list[str] = []
    for entry in node["outputs"]:
        found = _argument(entry)
        results.extend(_name(each) for each in (found if isinstance(found, tuple) else (found,)))
    line = user_line(node["metadata"].get("stack_trace"))
    target = _text(node["target"])
    name = _text(node.get("name") or (results[0] if results else target))
    return Operation(name, target.removeprefix("torch.ops."), arguments, tuple(results), line)


def _name(result: Argument) -> str:
    return result.name if isinstance(result, Ref) else ""


def _types(graph: Json) -> dict[str, ValueType]:
    types: dict[str, ValueType] = {name: _tensor_type(meta) for name, meta in graph["tensor_values"].items()}
    for name, value in graph["sym_int_values"].items():
        types[name] = _size(value)
    return types


def _tensor_type(meta: Json) -> TensorType:
    spelled = BY_NUMBER.get(meta["dtype"], "unknown")
    shape = tuple(_size(each) for each in meta["sizes"])
    lies = is_dense(shape, [_size(each) for each in meta["strides"]], _size(meta["storage_offset"]))
    return TensorType(dtype_named(spelled), shape, spelled, _text(meta["device"]["type"]), lies)


def _size(value: Json) -> Dim:
    return _integer(value["as_int"]) if "as_int" in value else size(_text(value["as_expr"]["expr_str"]))


def _argument(entry: Json) -> Argument:
    ((kind, value),) = ((kind, value) for kind, value in entry.items())
    if kind not in _READERS:
        raise UnsupportedGraphError(f"an argument of the form {kind} is not supported")
    return _READERS[kind](value)


def _literal(entry: Json) -> Literal:
    found = _argument(entry)
    if isinstance(found, Ref | tuple):
        raise ValueError(f"{entry} is not a literal")
    return found


def _number(value: Any) -> float:
    return float(value)


def _complex(entry: Json) -> complex:
    return complex(_number(entry["real"]), _number(entry["imag"]))


def _each(read: Callable[[Any], Argument]) -> Callable[[Sequence[Any]], Argument]:
    return lambda values: tuple(read(value) for value in values)


def _symbolic(entry: Json) -> Argument:
    ((kind, value),) = entry.items()
    if kind == "as_name":
        return Ref(_text(value))
    if not isinstance(value, bool | int | float):
        raise ValueError(f"{value!r} is not a number")
    return value


def _dtype(number: int) -> DType | str:
    spelled = BY_NUMBER.get(number, "unknown")
    return dtype_named(spelled) or spelled


def _reference(entry: Json) -> Ref:
    return Ref(_text(entry["name"]))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _wrong(value, "text")


def _integer(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else _wrong(value, "integer")


def _bound(value: Any) -> int | None:
    return None if value is None else _integer(value)


def _truth(value: Any) -> bool:
    return value if isinstance(value, bool) else _wrong(value, "truth value")


def _wrong(value: Any, wanted: str) -> NoReturn:
    raise ValueError(f"{str(value)[:80]!r} is no {wanted}")


_READERS: dict[str, Callable[[Any], Argument]] = {
    "as_none": lambda _: None,
    "as_tensor": _reference,
    "as_tensors": _each(_reference),
    "as_optional_tensor": lambda entry: _argument(entry),
    "as_optional_tensors": _each(lambda entry: _argument(entry)),
    "as_nested_tensors": _each(_each(_reference)),
    "as_int": _integer,
    "as_ints": _each(_integer),
    "as_int_lists": _each(_each(_integer)),
    "as_float": _number,
    "as_floats": _each(_number),
    "as_complex": _complex,
    "as_string": _text,
    "as_strings": _each(_text),
    "as_bool": _truth,
    "as_bools": _each(_truth),
    "as_sym_int": _symbolic,
    "as_sym_ints": _each(_symbolic),
    "as_sym_float": _symbolic,
    "as_sym_floats": _each(_symbolic),
    "as_sym_bool": _symbolic,
    "as_sym_bools": _each(_symbolic),
    "as_scalar_type": _dtype,
    "as_memory_format": lambda _: None,
    "as_layout": lambda number: None if number == 7 else f"layout {number}",
    "as_device": lambda device: str(device["type"]),
}
"""Readers of arguments, by their form in the schema. Floats that JSON lacks are strings, such as "-Infinity"."""
