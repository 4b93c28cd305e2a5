"""Gemm, MatMul and Einsum."""

from __future__ import annotations

import re
from collections.abc import Callable

from ...build import Tensor, einsum
from .node import Node
from .value import Value


def gemm(node: Node) -> Value:
    """`alpha * A' @ B' + beta * C`, C broadcast to the product. The transposes are axes of the sum, not copies."""
    left = "km" if node.integer("transA", 0) else "mk"
    right = "nk" if node.integer("transB", 0) else "kn"
    node.ignore(*(["broadcast"] if node.opset < 7 else []))
    alpha, beta = node.number("alpha", 1.0), node.number("beta", 1.0)
    product = _scaled(node, einsum(f"{left},{right}->mn", node.tensor(0), node.tensor(1)), alpha)
    if not node.has(2) or beta == 0:
        return product
    return node.shaped(product.shape, product + _scaled(node, node.tensor(2), beta))


def _scaled(node: Node, x: Tensor, factor: float) -> Tensor:
    if factor == 1:
        return x
    if x.dtype.is_float:
        return x * factor
    return x * int(factor) if factor == int(factor) else node.fail(f"integers are scaled by {factor}")


def matmul(node: Node) -> Value:
    return node.tensor(0) @ node.tensor(1)


def einsum_(node: Node) -> Value:
    equation = node.string("equation").replace(" ", "")
    terms = re.split(",|->", equation)
    if (
        len(node.inputs) != 2
        or not re.fullmatch("[A-Za-z]*,[A-Za-z]*->[A-Za-z]*", equation)
        or any(len(set(term)) != len(term) for term in terms)
    ):
        node.fail(f"{len(node.inputs)} inputs in {equation!r} are not two operands with distinct letters and a result")
    return einsum(equation, node.tensor(0), node.tensor(1))


OPERATORS: dict[str, Callable[[Node], Value]] = {"Einsum": einsum_, "Gemm": gemm, "MatMul": matmul}
