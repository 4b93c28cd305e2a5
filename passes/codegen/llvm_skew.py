"""LLVM 24's textual IR, rewritten for LLVM 22.

The MLIR bindings carry LLVM 24 and print text; llvmlite carries LLVM 22 and reads it. They differ in the spelling of
floating-point literals (`f0x3DCCCCCD`, `+inf`, `-qnan`, `+snan(0x1)`, and decimals that are not exact in their type)
and in memory effects on target-specific state (`target_mem`). No bitcode writer is exposed, so text is the bridge.

A literal does not say which type it has, and `f0x3C00` is 1.0 as half but 0.0078 as bfloat. In LLVM's grammar the type
of a constant always stands before it on the same line with no other floating-point type in between.
"""

from __future__ import annotations

import re

from tensorkiln.errors import DiagnosticError

from .float_bits import FORMATS, from_decimal, from_special, hexadecimal

_TOKEN = re.compile(
    r"""
      (?P<opaque> "(?:[^"\\]|\\.)*" | [%@!$\#^][-\w.$]+ | ;.* )
    | (?P<type>   \b(?:half|bfloat|float|double|fp128|x86_fp80|ppc_fp128)\b )
    | (?P<bits>   (?<![\w.])f0x[0-9A-Fa-f]+ )
    | (?P<special>(?<![\w.])[-+](?:inf|qnan|s?nan\(0x[0-9A-Fa-f]+\)) )
    | (?P<decimal>(?<![\w.])[-+]?\d+\.\d*(?:[eE][-+]?\d+)? )
    """,
    re.VERBOSE,
)
_NEEDS_WORK = re.compile(r"f0x|[-+](?:inf|qnan|s?nan)|\d\.\d*|target_mem")
_TARGET_MEMORY = re.compile(r"memory\([^()]*target_mem[^()]*\)\s*")


def downgrade(text: str) -> str:
    """The same module as LLVM 22 spells it.

    Every literal becomes hexadecimal, so nothing is rounded twice. A `memory(…)` attribute with `target_mem` is
    dropped, which only gives the optimiser less information. Raises DiagnosticError for a literal whose type is none of
    half, bfloat, float and double.
    """
    return "\n".join(_line(line) if _needs_work(line) else line for line in text.split("\n"))


def _needs_work(line: str) -> bool:
    # Every line that needs work has one of these. With the pattern alone, a module takes 2.5 times as long.
    may = "." in line or "f0x" in line or "inf" in line or "nan" in line or "target_mem" in line
    return may and _NEEDS_WORK.search(line) is not None


def _line(line: str) -> str:
    if line.startswith(";"):
        return line
    if "target_mem" in line:
        line = _TARGET_MEMORY.sub("", line)
    pieces: list[str] = []
    end, type_name = 0, ""
    for token in _TOKEN.finditer(line):
        kind = token.lastgroup
        if kind == "type":
            type_name = token.group()
        elif kind != "opaque":
            pieces += line[end : token.start()], _literal(str(kind), token.group(), type_name, line)
            end = token.end()
    return "".join(pieces) + line[end:]


def _literal(kind: str, text: str, type_name: str, line: str) -> str:
    form = FORMATS.get(type_name)
    if form is None:
        raise DiagnosticError(
            f"LLVM IR holds the literal {text} of type {type_name or 'unknown'}, which has no form for the code "
            f"generator: {line.strip()[:200]}",
            details={"stage": "codegen"},
        )
    if kind == "bits":
        pattern = int(text[3:], 16)
    elif kind == "special":
        pattern = from_special(text, form)
    else:
        pattern = from_decimal(text, form)
    return hexadecimal(pattern, type_name)
