"""Accesses to memory in the text of a module, and the calls that a watched launch puts around them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from .errors import UnsupportedKernel
from .text import operands, unquoted

READ: Final = 0
WRITE: Final = 1
ATOMIC: Final = 2

ACCESSES: Final = frozenset({"load", "store", "atomicrmw", "cmpxchg"})
"""The instructions that touch memory themselves."""

_FORM: Final = re.compile(
    rf"^  (?:\S+ = )?(?P<form>{'|'.join(sorted(ACCESSES))})"
    r"(?P<words>(?: (?:atomic|volatile|weak|\w+(?= ptr )))*) (?P<rest>.*)$"
)
_ORDERING: Final = re.compile(r" (?:unordered|monotonic|acquire|release|acq_rel|seq_cst)\b.*$")
_TYPE: Final = re.compile(r"^(?:<(?P<count>\d+) x (?P<element>\w+)>|(?P<scalar>\w+))")
_ALIGN: Final = re.compile(r"^align (\d+)$")
_MAX_BYTES: Final = 4096
"""Of one access; watch.ll has room for as much."""

_BITS: Final = {"half": 16, "bfloat": 16, "float": 32, "double": 64, "ptr": 64}
_MEMORY_CALL: Final = re.compile(r"@llvm\.(?:mem(?:cpy|move|set)|masked|vp|experimental)[\w.]*\(")


@dataclass(frozen=True, slots=True)
class Access:
    """An access of `size` bytes at the operand `pointer`, which is promised to be a multiple of `alignment`."""

    pointer: str
    size: int
    alignment: int
    kind: int


@dataclass(frozen=True, slots=True)
class Watcher:
    """Puts calls around accesses. The functions are addresses in the runtime."""

    before: int
    after: int

    def around(self, instruction: str, site: int) -> Iterable[str]:
        """The instruction with what must run before and after it. UnsupportedKernel when its form is unknown."""
        access = access_of(instruction)
        if access is None:
            return [instruction]
        arguments = f"{access.pointer}, i64 {access.size}, i64 {access.alignment}, i32 {access.kind}, i32 {site}"
        before = f"  call void inttoptr (i64 {self.before} to ptr)({arguments})"
        after = [f"  call void inttoptr (i64 {self.after} to ptr)()"] if access.kind & WRITE else []
        return [before, instruction, *after]


def access_of(instruction: str) -> Access | None:
    """How the instruction, which has no address spaces, touches memory; None when it does not."""
    if _MEMORY_CALL.search(unquoted(instruction)):
        raise UnsupportedKernel(f"a watched launch cannot follow this access: {instruction.strip()}")
    matched = _FORM.match(instruction)
    if matched is None:
        return None
    form, parts = matched["form"], operands(matched["rest"])
    if form == "load":
        kind, typed, pointer = READ, parts[0], parts[1]
    elif form == "store":
        kind, typed, pointer = WRITE, parts[0], parts[1]
    else:
        kind, typed, pointer = WRITE | ATOMIC, parts[1], parts[0]
    if "atomic" in matched["words"].split():
        kind |= ATOMIC
    size = _bytes(typed, instruction)
    alignment = next((int(found[1]) for part in parts for found in (_ALIGN.match(part),) if found), 1)
    return Access(_ORDERING.sub("", pointer), size, alignment, kind)


def _bytes(typed: str, instruction: str) -> int:
    """The bytes that a value of the type before the operand takes in memory."""
    matched = _TYPE.match(typed)
    element = (matched["element"] or matched["scalar"]) if matched else ""
    bits = int(element[1:]) if re.fullmatch(r"i\d+", element) else _BITS.get(element, 0)
    size = -(-bits * int(matched["count"] or 1) // 8) if matched else 0
    if not 0 < size <= _MAX_BYTES:
        raise UnsupportedKernel(f"a watched launch cannot follow an access of this type: {instruction.strip()}")
    return size
