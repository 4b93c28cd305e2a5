"""Suggestions for unknown names, and quotation of user input in errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from reprlib import Repr
from typing import Final

_SHOWN: Final = 60
_LISTED: Final = 12
_SHORT: Final = Repr()
_SHORT.maxother = _SHORT.maxstring = _SHORT.maxlong = 2 * _SHOWN

DTYPE_NAMES: Final[Mapping[str, str]] = {
    "float": "float32",
    "single": "float32",
    "f32": "float32",
    "fp32": "float32",
    "f4": "float32",
    "double": "float64",
    "f64": "float64",
    "fp64": "float64",
    "f8": "float64",
    "half": "float16",
    "f16": "float16",
    "fp16": "float16",
    "f2": "float16",
    "bf16": "bfloat16",
    "int": "int64",
    "integer": "int64",
    "long": "int64",
    "short": "int16",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
    "byte": "uint8",
    "boolean": "bool",
    "bool_": "bool",
    "i1": "bool",
    "fp8": "float8_e4m3fn",
    "float8": "float8_e4m3fn",
    "fp4": "float4_e2m1fn",
    "float4": "float4_e2m1fn",
    "none": "unit",
}
"""Other libraries' names of the dtypes."""


def nearest(word: str, known: Iterable[str], others: Mapping[str, str] | None = None) -> str | None:
    """The known name most similar to `word`, or its synonym in `others`; None when no name is similar."""
    if len(word) > _SHOWN:
        return None
    bare = word.strip().lower().rpartition(".")[2] or word
    names = list(known)
    meant = (others or {}).get(bare)
    if meant is not None:
        return meant
    by_case = {name.lower(): name for name in names}
    found = get_close_matches(bare, by_case, n=1, cutoff=0.7)
    return by_case[found[0]] if found else None


def did_you_mean(word: object, known: Iterable[str], others: Mapping[str, str] | None = None) -> str:
    """`; did you mean float32?`; without a similar name the known names if they are few, else an empty string."""
    names = list(known)
    meant = nearest(word, names, others) if isinstance(word, str) else None
    if meant is not None:
        return f"; did you mean {meant}?"
    return f"; known are {', '.join(names)}" if 0 < len(names) <= _LISTED else ""


def kind_of(value: object) -> str:
    """The type of a value, with its article: `an array`, `a list`, `None`."""
    if value is None:
        return "None"
    name = {"ndarray": "array"}.get(type(value).__name__, type(value).__name__)
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def ended(text: str) -> str:
    """The text with a final full stop, unless it ends with a question mark."""
    return text if text.endswith("?") else f"{text}."


def quoted(value: object) -> str:
    """A value from the user, shortened to one line, with control characters escaped."""
    if isinstance(value, str):
        return repr(value) if len(value) <= _SHOWN else f"{value[:_SHOWN]!r}…"
    try:
        text = _SHORT.repr(value)
    except ValueError:  # of an integer with thousands of digits
        return f"a number that is too long to be shown ({type(value).__name__})"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
