"""A kernel's interface, derived from its sink: variables, buffer slots, launch sizes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ..errors import DiagnosticError
from ..expr import INT64_MAX, Dim
from ..launch import Cast, DefineVar, LaunchNode, Variable, dim_from_launch
from ..program_ast import Index, Load, Param, Special, Store
from ..program_walk import toposort

LaunchSize = tuple[Dim, Dim, Dim]
AxisKind = Literal["global", "local", "direct_global"]

CORE_ID = "core_id"
"""The variable that a kernel split over cores reads its share from; its bounds are the number of cores."""

_KINDS: dict[str, AxisKind] = {"g": "global", "l": "local", "i": "direct_global"}


@dataclass(frozen=True, slots=True)
class DerivedMetadata:
    """Slots are sorted and distinct; a buffer that is loaded and stored is in `outs` and in `ins`."""

    vars: tuple[Variable, ...]
    var_names: tuple[str, ...]
    globals: tuple[int, ...]
    outs: tuple[int, ...]
    ins: tuple[int, ...]
    global_size: LaunchSize
    local_size: LaunchSize | None


def special_axis(name: str) -> tuple[AxisKind, int] | None:
    """The kind (by first letter: g, l or i) and axis (trailing digits, below 3) of a launch index, or None."""
    digits = re.search(r"[0-9]+$", name)
    if not digits or name[0] not in _KINDS or int(digits[0]) >= 3:
        return None
    return _KINDS[name[0]], int(digits[0])


def derive_metadata(sink: LaunchNode) -> DerivedMetadata:
    """The interface of the kernel under `sink`.

    DiagnosticError when a launch index has no axis, when direct global indices are mixed with work-group indices, when
    two variables of one name have different bounds, or when a launch extent cannot be written as a dimension.
    """
    variables: dict[str, Variable] = {}
    slots: set[int] = set()
    outs: set[int] = set()
    ins: set[int] = set()
    specials: list[Special] = []
    for node in toposort(sink):
        match node:
            case DefineVar():
                _define(variables, node)
            case Param(slot, None):
                slots.add(slot)
            case Special():
                specials.append(node)
            case Store(index):
                outs.update(_slot_of(index))
            case Load(index):
                ins.update(_slot_of(index))
            case _:
                pass
    names = tuple(sorted(variables))
    global_size, local_size = _launch_sizes(specials, variables.get(CORE_ID))
    return DerivedMetadata(
        vars=tuple(variables[name] for name in names),
        var_names=names,
        globals=tuple(sorted(slots)),
        outs=tuple(sorted(outs)),
        ins=tuple(sorted(ins)),
        global_size=global_size,
        local_size=local_size,
    )


def _define(variables: dict[str, Variable], node: DefineVar) -> None:
    known = variables.setdefault(node.name, Variable(name=node.name, min=node.min_val, max=node.max_val))
    if (known.min, known.max) != (node.min_val, node.max_val):
        raise DiagnosticError(
            f"variable {node.name} is defined with the bounds [{known.min}, {known.max}] "
            f"and [{node.min_val}, {node.max_val}]; define it once"
        )


def _slot_of(index: LaunchNode) -> tuple[int, ...]:
    """The slot of the parameter that `index` addresses, directly or through one cast; empty for another address."""
    address = index.source if isinstance(index, Cast) else index
    if isinstance(address, Index) and isinstance(address.buffer, Param) and address.buffer.device is None:
        return (address.buffer.slot,)
    return ()


def _launch_sizes(specials: list[Special], core_id: Variable | None) -> tuple[LaunchSize, LaunchSize | None]:
    sizes: dict[Literal["global", "local"], list[Dim]] = {"global": [1, 1, 1], "local": [1, 1, 1]}
    if core_id is not None:
        sizes["global"][0] = min(core_id.max + 1, INT64_MAX)
    kinds: set[AxisKind] = set()
    for special in specials:
        found = special_axis(special.name)
        if found is None:
            raise DiagnosticError(
                f"invalid SPECIAL axis name {special.name!r}: expected gidx, lidx or idx and 0, 1 or 2"
            )
        kind, axis = found
        kinds.add(kind)
        sizes["local" if kind == "local" else "global"][axis] = dim_from_launch(special.end)
    if "direct_global" in kinds and len(kinds) > 1:
        names = ", ".join(sorted(special.name for special in specials))
        raise DiagnosticError(f"direct global indices cannot be mixed with work-group indices: {names}")
    global_size, local_size = _triple(sizes["global"]), _triple(sizes["local"])
    return global_size, None if "direct_global" in kinds else local_size


def _triple(dims: list[Dim]) -> LaunchSize:
    return dims[0], dims[1], dims[2]
