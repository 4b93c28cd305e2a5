"""The fenced blocks of a Markdown page, and ways to hold them to their word."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
ANYTHING = "…"
"""In an example, what is left out or differs from run to run."""

_MARK = "--- next ---"
_BLOCK = re.compile(r"^```(\w+)(?: ([\w-]+))?\n(.*?)^```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the word after it (empty when there is none), and its text."""

    language: str
    word: str
    text: str
    line: int


def every_block(page: Path) -> list[Block]:
    """The blocks of a page in order."""
    text = page.read_text("utf-8")
    return [Block(m[1], m[2] or "", m[3], text.count("\n", 0, m.start()) + 1) for m in _BLOCK.finditer(text)]


def blocks(page: Path, language: str, word: str = "") -> list[Block]:
    """The blocks of a page in one language, marked with `word`, in order."""
    return [block for block in every_block(page) if (block.language, block.word) == (language, word)]


def run_python(page: Path) -> None:
    """Run the Python blocks of a page one after the other, as one program."""
    namespace: dict[str, object] = {"__name__": "docs"}
    for block in blocks(page, "python"):
        # Padded, so that a traceback shows the line of the page.
        source = "\n" * block.line + block.text
        exec(compile(source, str(page.relative_to(ROOT)), "exec"), namespace)


def shown_commands(page: Path, word: str = "") -> list[tuple[str, str]]:
    """The commands of the console blocks of a page that are marked so, each with what it is said to print."""
    text = "".join(block.text for block in blocks(page, "console", word))
    parts = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
    return [(part.partition("\n")[0], part.partition("\n")[2].strip("\n")) for part in parts]


def run_commands(
    shown: Sequence[tuple[str, str]],
    environment: Mapping[str, str],
    *,
    places: Mapping[str, str] | None = None,
    stderr: int = subprocess.PIPE,
) -> None:
    """Run commands in one shell, where `python` is this one, with other `places` for those of the page.

    Each must print what it is said to.
    """
    script = "".join(f"{command}\necho; echo '{_MARK}'\n" for command, _ in shown)
    for place, other in (places or {}).items():
        script = script.replace(place, other)
    command = ["bash", "-c", f'python() {{ {sys.executable} -W error "$@"; }}\n{script}']
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=stderr, text=True, timeout=120)
    printed = [part.strip("\n") for part in done.stdout.split(_MARK)[:-1]]
    assert len(printed) == len(shown), (done.stdout, done.stderr)
    for (command, expected), actual in zip(shown, printed, strict=True):
        pattern = ".*".join(re.escape(part) for part in expected.split(ANYTHING))
        assert re.fullmatch(pattern, actual, re.DOTALL), f"$ {command}\n{actual}\n{done.stderr}"


def disagreement(actual: Any, stated: Any, where: str = "") -> str | None:
    """Where `actual` lacks something that is stated, or has something else; None when it agrees.

    `…` agrees with anything, and as the last entry of a list with any number of further ones. An object may have
    fields that are not stated.
    """
    if stated == ANYTHING or actual == stated:
        return None
    if isinstance(actual, dict) and isinstance(stated, dict):
        missing = stated.keys() - actual.keys()
        if missing:
            return f"{where}: no field {sorted(missing)}"
        return _first(disagreement(actual[key], stated[key], f"{where}/{key}") for key in stated)
    if isinstance(actual, list) and isinstance(stated, list):
        is_open = stated[-1:] == [ANYTHING]
        named = stated[:-1] if is_open else stated
        if len(actual) == len(named) or (is_open and len(actual) > len(named)):
            pairs = enumerate(zip(actual, named, strict=False))
            return _first(disagreement(one, other, f"{where}/{place}") for place, (one, other) in pairs)
    return f"{where}: {actual!r}, not {stated!r}"


def _first(problems: Any) -> str | None:
    return next((problem for problem in problems if problem is not None), None)
