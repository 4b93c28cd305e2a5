"""Reject LLVM IR that the NVPTX back end has no code for: instead of an error, the back end ends the process.

Reads the text of the module after optimisation, since the optimiser adds and removes intrinsics.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from tensorkiln.architectures import Architecture
from tensorkiln.errors import DiagnosticError

from .nvptx_intrinsics import least_capability

_NAME: Final = re.compile(r'@("[^"]*"|[-\w.$]+)')
_OPAQUE: Final = re.compile(r'([%@!#$])(?:"[^"]*"|[-\w.$]+)|"[^"]*"|;.*')
_OPCODE: Final = re.compile(r"  (?:% = )?(?:tail |notail )?([a-z]\w*)")
_WIDTH: Final = re.compile(r"\bi(\d+)\b")
_SPACE: Final = re.compile(r"\baddrspace\((\d+)\)")
_SCOPE: Final = re.compile(r'syncscope\("([^"]*)"\)')
_FOREIGN_TYPE: Final = re.compile(r"\b(?:fp128|x86_fp80|ppc_fp128|x86_amx|token|vscale)\b|\btarget\(")
_TRUTHS: Final = re.compile(r"trunc (?:n[us]w )*<(\d+ x i\d+)> \S+ to <\d+ x i1>")
_RUNTIME_COUNT: Final = re.compile(r", i\d+ %")
# PTX ISA, "Identifiers"; the back end renames what is not an entry.
_IDENTIFIER: Final = re.compile(r"[A-Za-z_$][\w$]*")

_MAX_BITS: Final = 128
_WIDER: Final = frozenset({256, 512})
"""Widths of whole vectors, whose bits the optimiser handles as one integer."""
_MAX_ATOMIC_BITS: Final = 64
_MAX_CONVERTED_BITS: Final = 64
_SPACES: Final = frozenset({"0", "1", "3", "4", "5"})
"""Generic, global, shared, constant and local memory."""
_SCOPES: Final = frozenset({"block", "device"})
_CONVERSIONS: Final = frozenset({"fptosi", "fptoui", "sitofp", "uitofp"})
_ATOMICS: Final = frozenset({"atomicrmw", "cmpxchg", "load atomic", "store atomic"})
# The back end packs these into 32 or 64 bits and then does not know how to take single bits out.
_PACKED: Final = frozenset({"4 x i8", "2 x i16"})
_PACKED_SINCE: Final = {"2 x i32": (10, 0)}

_INSTRUCTIONS: Final = """
    ret br switch unreachable fneg add sub mul udiv sdiv urem srem shl lshr ashr and or xor fadd fsub fmul fdiv
    extractelement insertelement shufflevector extractvalue insertvalue alloca load store fence cmpxchg atomicrmw
    getelementptr trunc zext sext fptrunc fpext fptoui fptosi uitofp sitofp ptrtoint ptrtoaddr inttoptr bitcast
    addrspacecast icmp fcmp phi select freeze call
"""
"""Instructions with code at every width that has registers, apart from the checks below. Not `frem`: its code divides
and multiplies back, which is wrong for large quotients."""
_OPCODES: Final = frozenset(_INSTRUCTIONS.split())


def only_selectable(module: str, architecture: Architecture) -> None:
    """Check an optimised module for an architecture.

    Raises DiagnosticError with every intrinsic, function, instruction, type and global without code, and the kernel of
    the first use of each instruction or type.
    """
    problems = dict.fromkeys(_problems(module, architecture))
    if problems:
        raise DiagnosticError(
            f"LLVM's back end for {architecture.name} does not support {'; '.join(problems)}",
            details={"stage": "codegen", "target": architecture.name, "unsupported": list(problems)},
        )


def _problems(module: str, architecture: Architecture) -> Iterator[str]:
    checked: set[str] = set()
    kernel = ""
    for line in module.split("\n"):
        if line.startswith("declare "):
            yield from _of_declaration(line, architecture)
            continue
        if line.startswith("define "):
            kernel = _name(line)
            yield from _of_definition(line, kernel)
        elif line.startswith("@"):
            yield from _of_global(line)
        elif not line.startswith("  "):
            continue
        text = _blank(line)
        # Many lines differ only in names.
        if text not in checked or "syncscope" in line:
            checked.add(text)
            where = f" (in {kernel})" if line.startswith("  ") else ""
            yield from (f"{problem}{where}" for problem in _of_code(line, text, architecture))


def _of_declaration(line: str, architecture: Architecture) -> Iterator[str]:
    name = _name(line)
    since = least_capability(name)
    if not name.startswith("llvm."):
        yield f"the external function {name}"
    elif since is None:
        yield f"the intrinsic {name}"
    elif architecture.capability < since:
        yield f"the intrinsic {name}, which needs sm_{since[0]}{since[1]}"


def _of_definition(line: str, name: str) -> Iterator[str]:
    if " ptx_kernel " not in line.partition("@")[0]:
        yield f"the function {name}, which is not a kernel and was not inlined"
    elif not _IDENTIFIER.fullmatch(name):
        yield f"the kernel name {name!r}, which is not a PTX identifier"


def _of_global(line: str) -> Iterator[str]:
    name, words = _name(line), _blank(line).replace(",", " ").split()
    is_shared = "addrspace(3)" in words
    if not {"global", "constant"} & set(words) or "thread_local" in words or "appending" in words:
        yield f"the global {name}, which is not plain data"
    elif is_shared and not {"external", "undef", "poison"} & set(words):
        yield f"the initial value of {name} in shared memory"
    elif not is_shared and {"external", "extern_weak"} & set(words):
        yield f"the global {name}, which is defined nowhere"


def _of_code(line: str, text: str, architecture: Architecture) -> Iterator[str]:
    yield from (f"the type {name}" for name in _FOREIGN_TYPE.findall(text))
    widths = map(int, _WIDTH.findall(text))
    yield from (f"the type i{bits}" for bits in widths if bits > _MAX_BITS and bits not in _WIDER)
    yield from (f"address space {space}" for space in _SPACE.findall(text) if space not in _SPACES)
    yield from (f"synchronization scope {scope}" for scope in _SCOPE.findall(line) if scope not in _SCOPES)
    if (opcode := _OPCODE.match(text)) is not None:
        yield from _of_instruction(opcode[1], text, architecture)


def _of_instruction(opcode: str, text: str, architecture: Architecture) -> Iterator[str]:
    if opcode in ("load", "store") and f" {opcode} atomic " in text:
        opcode = f"{opcode} atomic"
    widest = max((int(bits) for bits in _WIDTH.findall(text)), default=0)
    if opcode.partition(" ")[0] not in _OPCODES:
        yield f"the instruction {opcode}"
    elif opcode == "call" and (" asm " in text or "@(" not in text):
        yield "a call of inline assembly or through a pointer"
    elif opcode == "alloca" and _RUNTIME_COUNT.search(text):
        yield "alloca of a number of elements that is not constant"
    elif (opcode in _ATOMICS and widest > _MAX_ATOMIC_BITS) or (
        opcode in _CONVERSIONS and widest > _MAX_CONVERTED_BITS
    ):
        yield f"{opcode} of i{widest}"
    elif opcode == "trunc" and (packed := _TRUTHS.search(text)) is not None:
        since = _PACKED_SINCE.get(packed[1])
        if packed[1] in _PACKED or (since is not None and architecture.capability >= since):
            yield f"trunc of <{packed[1]}> to truth values"


def _name(line: str) -> str:
    found = _NAME.search(line)
    return found[1].strip('"') if found else ""


def _blank(line: str) -> str:
    """The line with names reduced to their sigil, and without strings and comments."""
    return _OPAQUE.sub(r"\1", line)
