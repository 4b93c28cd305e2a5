"""The page of mistakes: `python -m tests.mistakes.page` writes it anew from the tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.mistakes.tables import BUILDER, CALLS, DOCUMENTS, REQUESTS, SETUP
from tests.snippets import ROOT

PAGE: Final = ROOT / "docs" / "mistakes.md"
_HEAD: Final = """# Mistakes and their messages

Common mistakes, and the messages of the SDK and the service. A test holds each message. Every error is a
`TensorkilnError`; errors of the [builder](build.md) are also a `TypeError` or an `AttributeError`, where Python would
raise one. A message quotes the names of the user, cut at 60 characters, with control characters escaped.
"""
_SECTIONS: Final[tuple[tuple[str, str, Mapping[str, str]], ...]] = (
    (
        "Writing a graph",
        """`b` is a builder with the symbol `n` and the inputs `x`, float32 of (3, 4), `y`, float32 of (4, 3), and
`whole`, int32 of (3, 4); `other` is a tensor of another builder.""",
        BUILDER,
    ),
    (
        "A graph as JSON",
        """`graph` is the graph of [README.md](../README.md), `nodes` its nodes, `node` the second of them, and `symbol`
its symbol `n`. The service says the same as `Graph.model_validate_json`.""",
        DOCUMENTS,
    ),
    ("Asking for a program", "`client` is a `Client`, and `b`, `x` and `graph` are as above.", REQUESTS),
    (
        "Calling a program",
        "`program` takes `rows`, float32 of (n, 64), and `weights`, float32 of (64, 10).",
        CALLS,
    ),
    (
        "Setting up",
        """In each of the first four rows the package of the message is missing. `large` is a builder whose inputs
`x` and `y` take 40 GB each; its message is a `LargeGraphWarning`. The service of the last row has no keys.""",
        SETUP,
    ),
)


def page() -> str:
    """The page as it has to be."""
    parts = [_HEAD]
    for title, where, mistakes in _SECTIONS:
        rows = "\n".join(f"| {_code(written)} | {_text(said)} |" for written, said in mistakes.items())
        parts.append(f"## {title}\n\n{where}\n\n| what is written | what is said |\n|---|---|\n{rows}\n")
    return "\n".join(parts)


def _code(text: str) -> str:
    return f"`{_text(text)}`"


def _text(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;") if "`" not in text else text


if __name__ == "__main__":
    PAGE.write_text(page())
