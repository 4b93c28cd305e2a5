"""Operations of the registry run their own evaluator."""

from __future__ import annotations

from ..custom import lookup
from ..nodes import Custom
from .precision import Array
from .scope import Evaluator, Scope


def evaluate_custom(node: Custom, scope: Scope) -> Array:
    return lookup(node.op_name).evaluate([scope.read(var) for var in node.in_vars], node.attributes)


EVALUATORS: dict[type, Evaluator] = {Custom: evaluate_custom}
