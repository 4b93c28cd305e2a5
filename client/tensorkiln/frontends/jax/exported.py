"""A function as `jax.export` serializes it, read without JAX.

The format is the FlatBuffer of `jax/_src/export/serialization_generated.py`, versions 2 to 11, calling conventions 9
and 10. Only the number of devices is read from shardings; a serialized derivative is ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from flatbuffers import number_types

from ...errors import InvalidGraphError, LimitExceededError, UnsupportedGraphError
from ...limits import MAX_BODY_BYTES, MAX_RANK
from .flat import FlatTable
from .tree import Tree, read_tree

CALLING_CONVENTIONS: Final = (9, 10)
MOST_ARGUMENTS: Final = 1 << 16
DTYPES: Final = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128", "bfloat16", "int4", "uint4"),
    *("float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float0"),
    *("float8_e4m3", "float8_e3m4", "float8_e8m0fnu", "float4_e2m1fn", "key<fry>", "key<rbg>", "key<urbg>"),
)
"""The names of the element types, in the order of their numbers in the file."""


class _Slot:
    """The numbers of the fields of `Exported` and `AbstractValue`."""

    FUNCTION_NAME: Final = 1
    IN_TREE: Final = 2
    IN_AVALS: Final = 3
    OUT_TREE: Final = 4
    OUT_AVALS: Final = 5
    DEVICES_SHORT: Final = 6
    PLATFORMS: Final = 9
    ORDERED_EFFECTS: Final = 10
    UNORDERED_EFFECTS: Final = 11
    MODULE: Final = 13
    CALLING_CONVENTION: Final = 14
    KEPT: Final = 15
    GLOBAL_CONSTANTS: Final = 16
    DEVICES: Final = 18
    UNIQUE_AVALS: Final = 19
    IN_AVAL_INDICES: Final = 22
    OUT_AVAL_INDICES: Final = 23
    AVAL_KIND: Final = 0
    AVAL_SHAPE: Final = 1
    AVAL_DTYPE: Final = 2


@dataclass(frozen=True, slots=True)
class Aval:
    """The abstract value of an array: JAX's name of its dtype, and its dims as JAX writes them, such as `2*n`."""

    dtype: str
    shape: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(self.shape)}]"


@dataclass(frozen=True, slots=True)
class Exported:
    """A serialized function.

    `in_avals` are the leaves of `in_tree`, of which `module` takes those at `kept`, in that order; `in_tree` is the
    pair of the positional arguments, a tuple, and those by name, a dict. `module` is a StableHLO portable artifact.
    """

    name: str
    in_tree: Tree
    in_avals: tuple[Aval, ...]
    out_tree: Tree
    out_avals: tuple[Aval, ...]
    kept: tuple[int, ...]
    platforms: tuple[str, ...]
    devices: int
    calling_convention: int
    module: bytes


def read_exported(content: bytes) -> Exported:
    """Read the function in `content`.

    InvalidGraphError when it is no exported function or is damaged, LimitExceededError when it is too large, and
    UnsupportedGraphError for several devices, side effects, or an unknown calling convention.
    """
    if len(content) > MAX_BODY_BYTES:
        raise LimitExceededError(
            f"The exported function has {len(content)} bytes, the limit is {MAX_BODY_BYTES}; "
            "pass large arrays as arguments.",
            limit="body_bytes",
            maximum=MAX_BODY_BYTES,
            actual=len(content),
        )
    root = FlatTable.root(content)
    _require_supported(root)
    _require_few(root)
    unique = [_aval(table) for table in root.tables(_Slot.UNIQUE_AVALS)]
    in_avals = _avals(root, unique, _Slot.IN_AVAL_INDICES, _Slot.IN_AVALS)
    out_avals = _avals(root, unique, _Slot.OUT_AVAL_INDICES, _Slot.OUT_AVALS)
    exported = Exported(
        name=root.text(_Slot.FUNCTION_NAME),
        in_tree=read_tree(root.table(_Slot.IN_TREE)),
        in_avals=in_avals,
        out_tree=read_tree(root.table(_Slot.OUT_TREE)),
        out_avals=out_avals,
        kept=tuple(root.numbers(_Slot.KEPT, number_types.Uint16Flags)),
        platforms=tuple(root.texts(_Slot.PLATFORMS)),
        devices=_devices(root),
        calling_convention=root.number(_Slot.CALLING_CONVENTION, number_types.Uint16Flags),
        module=root.bytes(_Slot.MODULE),
    )
    _require_whole(exported)
    return exported


def _devices(root: FlatTable) -> int:
    short = root.number(_Slot.DEVICES_SHORT, number_types.Int16Flags)
    return root.number(_Slot.DEVICES, number_types.Uint32Flags) or short


def _require_supported(root: FlatTable) -> None:
    convention = root.number(_Slot.CALLING_CONVENTION, number_types.Uint16Flags)
    if convention not in CALLING_CONVENTIONS:
        low, high = CALLING_CONVENTIONS
        raise UnsupportedGraphError(
            f"The function has the calling convention {convention} of jax.export; known are {low} to {high}. "
            "If the file is whole, export it with a JAX of 2024 to 2026."
        )
    if (devices := _devices(root)) != 1:
        raise UnsupportedGraphError(f"The function is for {devices} devices; export it for one.")
    if len(platforms := root.texts(_Slot.PLATFORMS)) > 1:
        shown = ", ".join(platforms)[:100]
        raise UnsupportedGraphError(f"The function is exported for several platforms ({shown}); export it for one.")
    effects = [each.text(0) for slot in (_Slot.ORDERED_EFFECTS, _Slot.UNORDERED_EFFECTS) for each in root.tables(slot)]
    if effects:
        raise UnsupportedGraphError(f"The function has the side effect {effects[0]!r}; a compiled program has none.")


def _require_few(root: FlatTable) -> None:
    """LimitExceededError for more than `MOST_ARGUMENTS` arguments or results."""
    lists = (_Slot.IN_AVALS, _Slot.OUT_AVALS, _Slot.UNIQUE_AVALS)
    indices = (_Slot.IN_AVAL_INDICES, _Slot.OUT_AVAL_INDICES)
    most = max(
        *(root.count(slot) for slot in lists),
        *(root.count(slot, number_types.Uint32Flags) for slot in indices),
        root.count(_Slot.KEPT, number_types.Uint16Flags),
    )
    if most > MOST_ARGUMENTS:
        raise LimitExceededError(
            f"The exported function has {most} arguments or results, the limit is {MOST_ARGUMENTS}.",
            limit="arguments",
            maximum=MOST_ARGUMENTS,
            actual=most,
        )


def _avals(root: FlatTable, unique: list[Aval], indices: int, whole: int) -> tuple[Aval, ...]:
    """The avals by their indices; without indices the list in field `whole`, which JAX wrote until 2026."""
    named = root.numbers(indices, number_types.Uint32Flags)
    if not named:
        found = [_aval(table) for table in root.tables(whole)]
    elif max(named) >= len(unique):
        raise InvalidGraphError(f"The exported function names aval {max(named)}, and has {len(unique)}.")
    else:
        found = [unique[index] for index in named]
    return tuple(found)


def _aval(table: FlatTable) -> Aval:
    kind = table.number(_Slot.AVAL_KIND, number_types.Int8Flags)
    number = table.number(_Slot.AVAL_DTYPE, number_types.Int8Flags)
    if kind != 0:
        raise UnsupportedGraphError("The function takes or gives a token; a compiled program has no side effects.")
    if not 0 <= number < len(DTYPES):
        raise InvalidGraphError(f"The exported function has an array of the element type {number}, which is unknown.")
    shape = table.texts(_Slot.AVAL_SHAPE)
    if len(shape) > MAX_RANK:
        raise LimitExceededError(
            f"The exported function has an array of rank {len(shape)}, the limit is {MAX_RANK}.",
            limit="rank",
            maximum=MAX_RANK,
            actual=len(shape),
        )
    return Aval(DTYPES[number], tuple(shape))


def _require_whole(exported: Exported) -> None:
    """InvalidGraphError when its parts contradict each other."""
    for tree, avals, what in (
        (exported.in_tree, exported.in_avals, "arguments"),
        (exported.out_tree, exported.out_avals, "results"),
    ):
        if tree.leaves != len(avals):
            raise InvalidGraphError(
                f"The exported function has {len(avals)} {what}, but a tree of {tree.leaves} leaves; export it again."
            )
    kept = exported.kept
    if list(kept) != sorted({*kept}) or (kept and kept[-1] >= len(exported.in_avals)):
        raise InvalidGraphError("The exported function keeps an argument that it does not have; export it again.")
    pair = exported.in_tree
    if pair.kind != "tuple" or [child.kind for child in pair.children] != ["tuple", "dict"]:
        raise InvalidGraphError("The exported function's arguments must be a tuple and a dict; export it again.")
    if not exported.module:
        raise InvalidGraphError("The exported function has no StableHLO module; export it again.")
