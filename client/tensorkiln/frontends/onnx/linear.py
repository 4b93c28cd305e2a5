"""Gemm, MatMul and Einsum."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Sequence

from ...build import Tensor, arange, einsum, equal, where
from .node import Node
from .value import Value


def gemm(node: Node) -> Tensor:
    """`alpha * A' @ B' + beta * C`, C broadcast to the product. Transposes are part of the einsum, not copies."""
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
    """Einsum with any number of operands, repeated letters, `...`, and an optional result."""
    operands = node.tensors()
    terms, result = _terms(node, operands)
    total, letters = _single(operands[0], terms[0])
    for place, (operand, term) in enumerate(zip(operands[1:], terms[1:], strict=True), 1):
        other, own = _single(operand, term)
        later = set("".join(terms[place + 1 :]) + result)
        kept = "".join(letter for letter in dict.fromkeys(letters + own) if letter in later)
        total, letters = einsum(f"{letters},{own}->{kept}", total, other), kept
    summed = [place for place, letter in enumerate(letters) if letter not in result]
    total = total.sum(summed, dtype=total.dtype) if summed else total
    letters = "".join(letter for letter in letters if letter in result)
    return total.permute([letters.index(letter) for letter in result]) if result else total


def _terms(node: Node, operands: Sequence[Tensor]) -> tuple[list[str], str]:
    """The letters of each operand and of the result; `...` becomes unused letters."""
    equation = node.string("equation").replace(" ", "")
    left, arrow, result = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(operands) or not all(re.fullmatch(r"[A-Za-z]*(\.\.\.[A-Za-z]*)?", term) for term in terms):
        node.invalid(f"{equation!r} does not name the axes of {len(operands)} operands")
    unused = [letter for letter in string.ascii_letters if letter not in equation]
    counts = [x.rank - len(term.replace("...", "")) for x, term in zip(operands, terms, strict=True)]
    most = max((count for count, term in zip(counts, terms, strict=True) if "..." in term), default=0)
    if (
        min(counts) < 0
        or most > len(unused)
        or any(n and "..." not in term for n, term in zip(counts, terms, strict=True))
    ):
        node.invalid(f"{equation!r} does not fit operands of the ranks {[x.rank for x in operands]}")
    rest = "".join(unused[:most])
    named = [term.replace("...", rest[most - count :]) for count, term in zip(counts, terms, strict=True)]
    if arrow:
        written = result.replace("...", rest)
        if len(set(written)) != len(written) or not set(written) <= {*"".join(named)}:
            node.invalid(f"the result of {equation!r} repeats letters or has some that no operand has")
        return named, written
    letters = "".join(named)
    once = sorted(letter for letter in set(letters) if letters.count(letter) == 1 and letter not in rest)
    return named, rest + "".join(once)


def _single(x: Tensor, term: str) -> tuple[Tensor, str]:
    """An operand with each letter once: the diagonal for a repeated letter."""
    for letter in term:
        while term.count(letter) > 1:
            first, second = term.index(letter), term.rindex(letter)
            if x.shape[first] != x.shape[second]:
                raise ValueError(
                    f"the axes {letter} of an operand have {x.shape[first]} and {x.shape[second]} elements"
                )
            rows, columns = (
                arange(x.builder, x.shape[axis]).reshape([-1, *(1,) * (x.rank - 1 - axis)]) for axis in (first, second)
            )
            x = where(equal(rows, columns), x, 0).sum([second], dtype=x.dtype)
            term = term[:second] + term[second + 1 :]
    return x, term


OPERATORS: dict[str, Callable[[Node], Value]] = {"Einsum": einsum_, "Gemm": gemm, "MatMul": matmul}
