"""Every kind and every operation has an evaluator."""

from tensorkiln.nodes import NODE_KINDS, BinopKind, Kernel, ReduceKind, Sink, UnaryKind, While
from tensorkiln.reference.binop import FLOAT, INTEGER, LOGICAL
from tensorkiln.reference.evaluate import EVALUATORS
from tensorkiln.reference.memory import EFFECTS
from tensorkiln.reference.reduction import REDUCTIONS
from tensorkiln.reference.unary import EXACT, TRANSCENDENTAL


def test_each_of_the_45_kinds_has_exactly_one_evaluator() -> None:
    tables = [*EVALUATORS, *EFFECTS, Kernel, Sink, While]
    assert len(tables) == 45
    assert set(tables) == set(NODE_KINDS.values())


def test_every_operation_is_in_a_table() -> None:
    assert {*FLOAT, *INTEGER, *LOGICAL} == set(BinopKind)
    assert {*TRANSCENDENTAL, *EXACT} == set(UnaryKind)
    assert set(REDUCTIONS) == set(ReduceKind)
