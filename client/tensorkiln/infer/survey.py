"""The first pass over a graph: its symbols, and the vars that more than one node defines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..errors import InvalidGraphError, LimitExceededError
from ..limits import MAX_SYMBOLS
from ..nodes import AnyNode, Assign, Bind, DefineVar, Kernel, SymVar, While, out_vars
from .stated import StatedGraph


@dataclass(frozen=True, slots=True)
class Survey:
    """`symbols`: bounds by name, narrowed by binds. `repeated`: vars that several nodes define. `updated_in_place`:
    repeated vars that an assign has both as target and as output."""

    symbols: dict[str, tuple[int, int]]
    repeated: frozenset[int]
    updated_in_place: frozenset[int]


def survey(graph: StatedGraph) -> Survey:
    """Survey the graph. InvalidGraphError for invalid symbols, LimitExceededError for too many."""
    written = [node.out_var for node in graph.nodes if node.out_var is not None]
    if len(set(written)) == len(written) and _SPECIAL.isdisjoint(map(type, graph.nodes)):
        # The usual case: no node needs inspection.
        return Survey(_declared(graph.symbolic_vars, []), frozenset(), frozenset())
    seen: set[int] = set()
    repeated: set[int] = set()
    updated: set[int] = set()
    defined: list[tuple[str, SymVar]] = []
    names: dict[int, str] = {}
    binds: list[tuple[str, Bind]] = []
    for index, node in enumerate(graph.nodes):
        for var in out_vars(node):
            if var in seen:
                repeated.add(var)
            seen.add(var)
        if type(node) in _SPECIAL:
            for pointer, inner in _nested(f"/nodes/{index}", node):
                if isinstance(inner, DefineVar):
                    defined.append((f"{pointer}/sym_var", inner.sym_var))
                    names[inner.out_var] = inner.sym_var.name
                elif isinstance(inner, Bind):
                    binds.append((pointer, inner))
                elif isinstance(inner, Assign) and inner.target_var == inner.out_var:
                    updated.add(inner.out_var)
    symbols = _declared(graph.symbolic_vars, defined)
    _fix(symbols, names, binds)
    return Survey(symbols, frozenset(repeated), frozenset(updated & repeated))


_SPECIAL = frozenset({DefineVar, Bind, Assign, Kernel, While})


def _nested(pointer: str, node: AnyNode) -> Iterator[tuple[str, AnyNode]]:
    """The innermost node that a kernel wraps, or the node itself, with its JSON Pointer."""
    while isinstance(node, Kernel):
        pointer, node = f"{pointer}/ast", node.ast
    yield pointer, node


def _declared(symbolic_vars: Sequence[SymVar], defined: list[tuple[str, SymVar]]) -> dict[str, tuple[int, int]]:
    symbols: dict[str, tuple[int, int]] = {}
    for index, symbol in enumerate(symbolic_vars):
        pointer = f"/symbolic_vars/{index}"
        if symbol.name in symbols:
            raise InvalidGraphError(f"the symbol {symbol.name} is declared twice", pointers=[pointer])
        symbols[symbol.name] = _bounds(symbol, pointer)
    for pointer, symbol in defined:
        bounds = symbols.setdefault(symbol.name, _bounds(symbol, pointer))
        if bounds != (symbol.min_val, symbol.max_val):
            raise InvalidGraphError(
                f"the symbol {symbol.name} is declared elsewhere with the bounds {bounds[0]} to {bounds[1]}, "
                f"here {symbol.min_val} to {symbol.max_val}",
                pointers=[pointer],
            )
    if len(symbols) > MAX_SYMBOLS:
        raise LimitExceededError(
            f"the limit of symbols is {MAX_SYMBOLS}, symbolic_vars and define_vars declare {len(symbols)}",
            pointers=["/symbolic_vars"],
            limit="symbols",
            maximum=MAX_SYMBOLS,
            actual=len(symbols),
        )
    return symbols


def _bounds(symbol: SymVar, pointer: str) -> tuple[int, int]:
    if symbol.min_val > symbol.max_val:
        message = f"symbol {symbol.name}: min_val {symbol.min_val} is greater than max_val {symbol.max_val}"
        raise InvalidGraphError(message, pointers=[pointer])
    return symbol.min_val, symbol.max_val


def _fix(symbols: dict[str, tuple[int, int]], names: dict[int, str], binds: list[tuple[str, Bind]]) -> None:
    """Narrow each bound symbol to its value."""
    for pointer, bind in binds:
        name = names.get(bind.sym_var)
        if name is None:
            message = f"bind takes the var of a define_var, which var {bind.sym_var} is not"
            raise InvalidGraphError(message, pointers=[f"{pointer}/sym_var"])
        low, high = symbols[name]
        if not low <= bind.value <= high:
            message = f"{name} is bound to {bind.value}, outside of {low} to {high} or against another bind"
            raise InvalidGraphError(message, pointers=[f"{pointer}/value"])
        symbols[name] = (bind.value, bind.value)
