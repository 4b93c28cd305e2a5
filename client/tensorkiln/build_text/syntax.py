"""Parsing of the text, with limits of size and nesting that are checked before evaluation."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable
from typing import Final, TypeAlias

from ..errors import InvalidGraphError, LimitExceededError, UnsupportedGraphError
from .place import Place, shortened

MAX_TEXT_BYTES: Final = 1 << 16
"""Bytes of the text in UTF-8."""
MAX_NESTING: Final = 100
"""The most levels of nested expressions. A sum of n terms has n levels."""

PlaceOf: TypeAlias = "Callable[[ast.AST], Place]"

_WORDS: Final = {
    "FunctionDef": "a function definition",
    "AsyncFunctionDef": "a function definition",
    "ClassDef": "a class",
    "Lambda": "a lambda",
    "For": "a for loop",
    "AsyncFor": "a for loop",
    "While": "a while loop",
    "If": "an if statement",
    "IfExp": "a conditional expression",
    "With": "a with statement",
    "Try": "a try statement",
    "Import": "an import",
    "ImportFrom": "an import",
    "ListComp": "a comprehension",
    "SetComp": "a comprehension",
    "DictComp": "a comprehension",
    "GeneratorExp": "a comprehension",
    "JoinedStr": "an f-string",
    "TemplateStr": "a t-string",
    "Starred": "an unpacking with *",
    "NamedExpr": "an assignment inside an expression",
    "AugAssign": "an assignment such as +=",
    "AnnAssign": "an annotation",
    "BoolOp": "`and` or `or`",
    "Not": "`not`",
    "Dict": "a dict",
    "Set": "a set",
    "Delete": "a del statement",
    "Raise": "a raise statement",
    "Assert": "an assert statement",
    "Global": "a global statement",
    "Match": "a match statement",
    "Await": "an await",
    "Constant": "a literal of this kind",
    "Subscript": "an index here",
    "Yield": "a yield",
    "YieldFrom": "a yield",
}


def parse(text: str) -> tuple[list[ast.stmt], PlaceOf]:
    """The statements of the text, and a function for the place of a node.

    LimitExceededError for a text that is too long or nested too deeply, InvalidGraphError for one that is not Python.
    """
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidGraphError("The text of the builder is not Unicode.") from None
    if size > MAX_TEXT_BYTES:
        raise LimitExceededError(
            f"The text of the builder has {size} bytes, the limit is {MAX_TEXT_BYTES}; send the graph in JSON.",
            limit="builder_bytes",
            maximum=MAX_TEXT_BYTES,
            actual=size,
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except SyntaxError as error:
        is_number = "integer string conversion" in error.msg
        said = "an integer has thousands of digits" if is_number else shortened(error.msg)
        raise Place(error.lineno or 1, error.offset or 1).error(said) from None
    except ValueError as error:  # of a null byte in older Pythons
        raise Place(1, 1).error(shortened(error)) from None
    except (RecursionError, MemoryError):
        raise InvalidGraphError(f"The text of the builder is nested more than {MAX_NESTING} levels deep.") from None
    place_of = _places(text)
    _require_shallow(tree, place_of)
    return tree.body, place_of


def _places(text: str) -> PlaceOf:
    lines = text.encode().splitlines()

    def place_of(node: ast.AST) -> Place:
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        before = lines[line - 1][:column] if line <= len(lines) else b""
        return Place(line, len(before.decode(errors="replace")) + 1)

    return place_of


def _require_shallow(tree: ast.Module, place_of: PlaceOf) -> None:
    level: list[ast.AST] = list(tree.body)
    depth = 0
    while level:
        depth += 1
        if depth > MAX_NESTING:
            place = place_of(next((node for node in level if hasattr(node, "lineno")), tree.body[0]))
            raise LimitExceededError(
                f"{place}: expressions are nested more than {MAX_NESTING} levels deep; give one of them a name.",
                limit="builder_nesting",
                maximum=MAX_NESTING,
                actual=depth,
            )
        level = [inner for node in level for inner in ast.iter_child_nodes(node) if _counts(inner)]


def _counts(node: ast.AST) -> bool:
    return not isinstance(node, ast.expr_context | ast.operator | ast.unaryop | ast.cmpop)


def refused(node: ast.AST, place: Place) -> UnsupportedGraphError:
    """The error for an unsupported construct."""
    name = type(node).__name__
    what = _WORDS.get(name, f"the construct {name}")
    error = place.error(
        f"{what} is not read; the text of a builder has assignments, calls of the builder's functions and methods, "
        "operators, indices and literals",
        UnsupportedGraphError,
    )
    error.details["construct"] = name
    return error
