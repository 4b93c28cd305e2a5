"""Find the functions in which LLVM's vectoriser has nothing to do: their loops are in vectors already, or stay scalar.

The full pipeline takes ten times as long for them as the few passes that they need.
"""

from __future__ import annotations

import re
from typing import Final

from .loop_blocks import FUNCTION, is_vectorised, loops

SCALAR: Final = "kiln-scalar"
"""LLVM's attribute of a function whose loops run too briefly to be vectorised."""
_GROUP: Final = re.compile(rf'^attributes #(\d+) = \{{ [^\n]*"{SCALAR}"', re.MULTILINE)
_UNKNOWN: Final = re.compile(r"^(?!\d+: +; preds = )[^ \n]+:", re.MULTILINE)
"""A block that is not as the bindings print it."""
_CALL: Final = re.compile(r"call void @(?!llvm\.)(\w+)\(")


def vectorised(llvm_ir: str) -> frozenset[str]:
    """The names of the functions of a module, as the bindings print it, without a loop for the vectoriser.

    A function without loops counts with those that it calls: they may be inlined.
    """
    texts = {found["name"]: found["text"] for found in FUNCTION.finditer(llvm_ir)}
    innermost = {
        name: [text[loop.start : loop.end] for loop in loops(text) if loop.is_innermost]
        for name, text in texts.items()
        if not _UNKNOWN.search(text)
    }
    scalar = _scalar(llvm_ir)
    own = {name for name, found in innermost.items() if all(map(is_vectorised, found))}
    known = own | scalar
    return scalar | {name for name in own if innermost[name] or known.issuperset(_CALL.findall(texts[name]))}


def _scalar(llvm_ir: str) -> frozenset[str]:
    """The functions with the attribute `SCALAR`."""
    found = (
        re.findall(rf"^define [^\n]*@(\w+)\([^\n]* #{group} \{{$", llvm_ir, re.MULTILINE)
        for group in _GROUP.findall(llvm_ir)
    )
    return frozenset(name for names in found for name in names)
