"""Control flow: calls are inlined, both branches are computed and one result selected, and loops with a small number of
turns known from constants are unrolled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dialect.mlir import ir
from tensorkiln import build
from tensorkiln.build import Tensor
from tensorkiln.expr import free_symbols

from .lapack import TARGETS as LAPACK
from .loops import computed_loop
from .op import Op
from .running import dynamic_reduce_window
from .symbols import SameSize, lone_symbol
from .table import Translator
from .turns import counted_turns
from .value import Known, Pair, Value

MAX_TURNS: Final = 1 << 12
MAX_UNROLLED: Final = 1 << 10
"""The most turns, and about the most nodes, of an unrolled loop: a node takes 5 ms to compile."""
TOGETHER: Final = 1 << 7
MOST_TOGETHER: Final = 32
"""The most nodes and turns that become one turn of such a loop, which stores all that it carries."""


def _call(op: Op) -> Sequence[Value]:
    return op.call(ir.FlatSymbolRefAttr(op.attribute("callee")).value, op.operands)


def _composite(op: Op) -> Sequence[Value]:
    """Translate the operation's decomposition."""
    return op.call(ir.FlatSymbolRefAttr(op.attribute("decomposition")).value, op.operands)


def _while(op: Op) -> Sequence[Value]:
    before = op.builder.node_count
    carried: Sequence[Value] = op.operands
    passed: list[Sequence[Value]] = [carried]
    while True:
        (condition,) = op.run(0, carried)
        if not isinstance(condition, Known) or condition.is_symbolic:
            return computed_loop(op, op.operands)
        if not condition.array.item():
            return carried
        nodes = op.builder.node_count - before
        if nodes > MAX_UNROLLED or len(passed) > MAX_TURNS:
            break
        carried = op.run(1, carried)
        passed.append(carried)
    # Nothing reads turns so far that are turns of the loop, too.
    turns, walked = counted_turns(op), len(passed) - 1
    if turns is None or walked == 0:
        return computed_loop(op, op.operands)
    together = max(1, min(walked, MOST_TOGETHER, TOGETHER * walked // max(1, nodes)))
    return computed_loop(op, passed[turns % together], together)


def _if(op: Op) -> Sequence[Value]:
    condition = op.operands[0]
    if isinstance(condition, Known):
        return op.run(0 if condition.array.item() else 1, ())
    return _chosen(op, op.as_tensor(condition), op.run(0, ()), op.run(1, ()))


def _case(op: Op) -> Sequence[Value]:
    index, count = op.operands[0], len(op.raw.regions)
    if isinstance(index, Known) and not index.is_symbolic:
        wanted = int(index.array.item())
        return op.run(wanted if 0 <= wanted < count else count - 1, ())
    place = op.as_tensor(index)
    results = op.run(count - 1, ())
    for branch in reversed(range(count - 1)):
        results = _chosen(op, build.equal(place, branch), op.run(branch, ()), results)
    return results


def _chosen(op: Op, condition: Tensor, left: Sequence[Value], right: Sequence[Value]) -> list[Value]:
    pairs = list(zip(left, right, strict=True))
    for a, b in pairs:
        if a.shape != b.shape:
            shown = [f"({', '.join(map(str, each.shape))})" for each in (a, b)]
            op.fail(
                f"its branches have different shapes, {shown[0]} and {shown[1]}, and a branch is chosen at run time"
            )
    return [_one_of(op, condition, a, b) for a, b in pairs]


def _one_of(op: Op, condition: Tensor, left: Value, right: Value) -> Value:
    if isinstance(left, Pair) and isinstance(right, Pair):
        return Pair(*(op.chosen(condition, *parts) for parts in ((left.real, right.real), (left.imag, right.imag))))
    return op.chosen(condition, left, right)


def _custom_call(op: Op) -> Sequence[Value]:
    target = op.string("call_target_name")
    if target in _IDENTITIES:
        return op.operands
    if target == "shape_assertion":
        _require(op)
        return ()
    if target == "stablehlo.dynamic_reduce_window":
        return [dynamic_reduce_window(op)]
    if target in LAPACK:
        return LAPACK[target](op)
    shown = "".join(char if char.isprintable() else "?" for char in target)[:64]
    op.fail(f"the custom call {shown!r} is not supported; it is code of another program")


def _require(op: Op) -> None:
    """Check that an assertion about shapes always holds.

    Raises SameSize if it holds once a symbol is replaced by another dimension; the translation restarts with that.
    """
    if not op.operands:
        op.invalid("an assertion about shapes has no operand")
    condition = op.operands[0]
    if isinstance(condition, Known) and not condition.is_symbolic:
        if not condition.array.all():
            op.invalid(f"an assertion about shapes is false{_said(op)}")
        return
    compared = op.undecided.get(condition.var) if isinstance(condition, Tensor) else None
    if compared is not None and compared.direction == "EQ":
        for symbol, other in ((compared.left, compared.right), (compared.right, compared.left)):
            name = lone_symbol(symbol)
            if name is not None and name not in free_symbols(other):
                raise SameSize(name, other)
    op.fail(f"whether an assertion about shapes holds depends on symbols; give them other bounds in dims{_said(op)}")


def _said(op: Op) -> str:
    """The module's own message for a failed assertion."""
    if not op.has("error_message"):
        return ""
    message = "".join(char if char.isprintable() else " " for char in op.string("error_message"))
    return f": {message[:200]}"


def _placed(op: Op) -> Sequence[Value]:
    return op.operands


_IDENTITIES: Final = frozenset(
    {"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "xla.sdy.FuncResultSharding"}
)
"""Custom calls that place values on devices: identities, since a program has one device."""


OPERATORS: Final[dict[str, Translator]] = {
    "stablehlo.case": _case,
    "stablehlo.custom_call": _custom_call,
    "stablehlo.if": _if,
    "stablehlo.while": _while,
    "sdy.sharding_constraint": _placed,
}

ANYWHERE: Final[dict[str, Translator]] = {"func.call": _call, "stablehlo.composite": _composite}
"""Also valid in regions on scalars."""
