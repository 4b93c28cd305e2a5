"""Carry numbers on lines of LLVM IR to lines of assembler text, as debug locations, which change no code.

The number is the line of a location; 0 means none. Functions are scopes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Final

from dialect.mlir import PassManager, ir, llvm

_SCOPES: Final = "builtin.module(ensure-debug-info-scope-on-llvm-func{emission-kind=DebugDirectivesOnly})"
_UNPLACED: Final = re.compile(r'\bloc\((?:unknown|"[^"]*")\)')
_AT: Final = re.compile(r", !dbg !(\d+)")
_LOCATION: Final = re.compile(r"^!(\d+) = (?:distinct )?!DILocation\(line: (\d+),.*\bscope: !(\d+)", re.MULTILINE)
_FILE_SCOPE: Final = re.compile(r"^!(\d+) = .*!DILexicalBlockFile\(.*\bfile: !(\d+)", re.MULTILINE)
_FILE: Final = re.compile(r'^!(\d+) = !DIFile\(filename: "([^"]*)"', re.MULTILINE)
_DEFINED: Final = re.compile(r'^define [^@]*@"?([\w.$-]+)"?\(')
_CALLED: Final = re.compile(r"\bcall void @([\w.$]+)\(")
_UNIT: Final = "language: DW_LANG_C, isOptimized: true, runtimeVersion: 0, emissionKind: DebugDirectivesOnly"
_METADATA: Final = re.compile(r"^!(\d+) = ", re.MULTILINE)
_CALL: Final = re.compile(r"^  (?:%\S+ = )?(?:tail |musttail |notail )?call ")
_PLACE: Final = re.compile(r"^\s*\.loc\s+\d+\s+(\d+)\s")
_DEBUG: Final = re.compile(
    r"\s*\.(?:loc|file)\s+\d|\s*\.cfi_|\s*\.section\s+\.debug_"
    r"|\.L(?:tmp|func_begin)\d+:|\$L__(?:tmp|func_begin|func_end)\d+:"
)
_END: Final = re.compile(r"(?:\.L|\$L__)func_end\d+:|\}")
_LABEL: Final = re.compile(r"([A-Za-z_][\w.$]*):")

Joined = Callable[[tuple[int, ...]], int]
"""Joins several nonzero numbers into one."""


def numbers_of_functions(module: ir.Module, file: str) -> dict[str, list[int]]:
    """For the LLVM IR of a module of the LLVM dialect, the numbers of each function's lines, by locations in `file`."""
    # LLVM requires a location on every call that it may inline.
    placed = _UNPLACED.sub('loc("-":0:0)', module.operation.get_asm(enable_debug_info=True))
    copy = ir.Module.parse(placed, module.context)
    PassManager.parse(_SCOPES, module.context).run(copy.operation)
    text = str(llvm.translate_module_to_llvmir(copy.operation))
    files = {found[1] for found in _FILE.finditer(text) if found[2] == file}
    scopes = {found[1] for found in _FILE_SCOPE.finditer(text) if found[2] in files}
    lines = {found[1]: int(found[2]) for found in _LOCATION.finditer(text) if found[3] in scopes}
    return {
        name: [lines.get(found[1], 0) if (found := _AT.search(line)) else 0 for line in body]
        for name, _, body in _functions(text.split("\n"))
    }


def numbers_of_lines(
    llvm_ir: str, callees: Mapping[str, str], known: Mapping[str, Sequence[int]], join: Joined
) -> list[int]:
    """The number of each line of LLVM IR whose functions are `known`, or were merged from known functions.

    `callees` gives the callee of each function before the merge.
    """
    lines = llvm_ir.split("\n")
    functions = list(_functions(lines))
    sources = {name: [name] for name, _, _ in functions if name in known}
    for name, _, body in functions:
        for line in body:
            called = _CALLED.search(line)
            if called and called[1] not in known and name in callees:
                sources.setdefault(called[1], []).append(callees[name])
    numbers = [0] * len(lines)
    for name, start, body in functions:
        columns = [known[each] for each in sources.get(name, ())]
        if not columns or any(len(column) != len(body) for column in columns):
            continue
        for at, found in enumerate(zip(*columns, strict=True), start):
            some = tuple(dict.fromkeys(number for number in found if number))
            numbers[at] = join(some) if some else 0
    return numbers


def callees(llvm_ir: str) -> dict[str, str]:
    """The first callee of each function."""
    found: dict[str, str] = {}
    for name, _, body in _functions(llvm_ir.split("\n")):
        called = next((each[1] for line in body if (each := _CALLED.search(line))), None)
        if called is not None:
            found[name] = called
    return found


def marked(llvm_ir: str, numbers: Sequence[int]) -> str:
    """The same module with a debug location on each line that has a number."""
    lines = llvm_ir.split("\n")
    following = max((int(found[1]) + 1 for found in _METADATA.finditer(llvm_ir)), default=0)
    unit, file, kind = range(following, following + 3)
    metadata = [
        f"!{unit} = distinct !DICompileUnit({_UNIT}, file: !{file})",
        f'!{file} = !DIFile(filename: "kiln", directory: "")',
        f"!{kind} = !DISubroutineType(types: !{{}})",
    ]
    following += len(metadata)
    for name, start, body in _functions(lines):
        scope, places = following, dict[int, int]()
        following += 1
        metadata.append(
            f'!{scope} = distinct !DISubprogram(name: "{name}", scope: !{file}, file: !{file}, line: 0, type: !{kind}, '
            f"spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !{unit})"
        )
        lines[start] = f"{body[0].removesuffix(' {')} !dbg !{scope} {{"
        for at, line in enumerate(body[1:-1], start + 1):
            number = numbers[at]
            # LLVM requires a location, even line 0, on calls that it may inline.
            if not number and not _CALL.match(line):
                continue
            if number not in places:
                places[number] = following
                metadata.append(f"!{following} = !DILocation(line: {number}, scope: !{scope})")
                following += 1
            lines[at] = f"{line}, !dbg !{places[number]}"
    # The module already has a debug info version.
    return "\n".join([*lines, f"!llvm.dbg.cu = !{{!{unit}}}", *metadata, ""])


def numbers_of_assembly(assembly: str, marked: str) -> list[int]:
    """The number of each line of assembler text, from the text of the marked module.

    Debug locations add stack directives, and some targets then order the start of a function differently. For such
    functions only identical lines get a number.
    """
    lines = assembly.split("\n")
    others, numbers = _unmarked(marked)
    if others == lines:
        return numbers
    known = {name: (first, last) for name, first, last in _parts(others)}
    found = [0] * len(lines)
    for name, first, last in _parts(lines):
        begin, end = known.get(name, (0, 0))
        pairs = SequenceMatcher(None, others[begin:end], lines[first:last])
        for source, target, count in pairs.get_matching_blocks():
            found[first + target : first + target + count] = numbers[begin + source : begin + source + count]
    return found


def _unmarked(assembly: str) -> tuple[list[str], list[int]]:
    """The lines of assembler text without those that debug locations add, and the number of each."""
    kept: list[str] = []
    numbers: list[int] = []
    number = 0
    for line in assembly.split("\n"):
        if place := _PLACE.match(line):
            number = int(place[1])
        if _END.match(line):
            number = 0
        if _DEBUG.match(line):
            continue
        is_instruction = line.startswith("\t") and not line.lstrip().startswith((".", "//", "#", "{", "}"))
        kept.append(line)
        numbers.append(number if is_instruction else 0)
    return kept, numbers


def _parts(lines: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Each function of assembler text: its name, its first line, and the line after its last."""
    name, first = "", 0
    for at, line in enumerate(lines):
        if label := _LABEL.match(line):
            name, first = label[1], at
        elif name and _END.match(line):
            yield name, first, at
            name = ""


def _functions(lines: Sequence[str]) -> Iterator[tuple[str, int, Sequence[str]]]:
    """Each defined function: its name, its first line number, and its lines from head to end."""
    start, name = 0, ""
    for at, line in enumerate(lines):
        if defined := _DEFINED.match(line):
            start, name = at, defined[1]
        elif line == "}" and name:
            yield name, start, lines[start : at + 1]
            name = ""
