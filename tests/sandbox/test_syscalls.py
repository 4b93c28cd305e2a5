"""Each system call that the filter names is refused in a job, and every argument that it judges by is judged."""

from __future__ import annotations

import errno
import os
import struct
import subprocess
import sys

import pytest

from service.sandbox import syscalls
from service.sandbox.syscalls import FIRST_UNKNOWN, JUDGED, REFUSED

pytestmark = pytest.mark.skipif(not syscalls.is_supported(), reason="this kernel filters no system calls")

CONFINED = """
import ctypes, json, os
from service.sandbox import confine, syscalls
confine.renounce_privileges()
syscalls.forbid_processes()
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def error(number, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(each) for each in arguments))
    return ctypes.get_errno() if result < 0 else 0
"""


def confined(script: str) -> str:
    """What a script prints behind the filter."""
    done = subprocess.run([sys.executable, "-c", CONFINED + script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_every_refused_call_is_refused() -> None:
    numbers = {name: syscalls.number(name) for name in REFUSED}
    known = {name: number for name, number in numbers.items() if number is not None}
    allowed = confined(
        f"print([name for name, number in {known}.items() if error(number, 0, 0, 0, 0, 0, 0) != {errno.EPERM}])"
    )
    assert allowed == "[]"
    assert len(known) > 100


def test_calls_that_are_newer_than_the_filter_do_not_exist() -> None:
    assert confined(f"print([error({FIRST_UNKNOWN} + n) for n in range(40)])") == str([errno.ENOSYS] * 40)


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("kill", "os.getpid(), 0", 0),
        ("kill", "os.getppid(), 0", errno.EPERM),
        ("kill", "0, 0", errno.EPERM),
        ("kill", "-1, 0", errno.EPERM),
        ("tgkill", "os.getppid(), os.getppid(), 0", errno.EPERM),
        ("prctl", "1, 0, 0, 0, 0", errno.EPERM),
        ("prctl", "62, 0, os.getppid(), 0, 0", errno.EPERM),
        ("prlimit64", "os.getppid(), 7, 0, 0", errno.EPERM),
        ("prlimit64", "0, 7, 0, 0", 0),
        ("fcntl", "0, 8, os.getppid()", errno.EPERM),
        ("fcntl", "0, 1024, 0", errno.EPERM),
        ("fcntl", "0, 1026, 4", errno.EPERM),
        ("fcntl", "0, 1", 0),
        ("ioctl", "0, 0x5412, 0", errno.EPERM),
    ],
)
def test_a_judged_call_is_refused_by_its_arguments(name: str, arguments: str, expected: int) -> None:
    assert name in JUDGED
    assert confined(f"print(error({syscalls.number(name)}, {arguments}))") == str(expected)


def test_a_file_is_truncated_only_by_who_opens_it_to_write(tmp_path: os.PathLike[str]) -> None:
    script = f"""
path = os.path.join({os.fspath(tmp_path)!r}, "file")
tried = []
for mode in (os.O_WRONLY | os.O_CREAT, os.O_RDWR, os.O_RDONLY, os.O_ACCMODE):
    try:
        os.close(os.open(path, mode | os.O_TRUNC))
        tried.append(0)
    except OSError as failure:
        tried.append(failure.errno)
print(tried)
"""
    assert confined(script) == str([0, 0, errno.EPERM, errno.EPERM])


def test_root_has_no_capability_left() -> None:
    status = confined("print(open('/proc/self/status').read())").splitlines()
    held = dict(line.split(":\t") for line in status if line.startswith(("CapInh", "CapPrm", "CapEff", "NoNewPrivs")))
    assert {int(held[name], 16) for name in ("CapInh", "CapPrm", "CapEff")} == {0}
    assert held["NoNewPrivs"] == "1"


PID = 4242
ALLOWED, EPERM, ENOSYS, KILLED = "allowed", errno.EPERM, errno.ENOSYS, "killed"
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def verdict(machine: str, number: int, *arguments: int, audit: int | None = None) -> object:
    """What the filter of a machine says of a call, by an interpreter of its few instructions."""
    words = {0: number, 4: AUDIT[machine] if audit is None else audit}
    words |= {16 + 8 * place: argument for place, argument in enumerate(arguments)}
    program = list(struct.iter_unpack("HBBI", syscalls.program_for(machine, PID)))
    place = accumulator = 0
    while True:
        code, when_true, when_false, operand = program[place]
        place += 1
        if code == 0x20:
            accumulator = words[operand]
        elif code == 0x54:
            accumulator &= operand
        elif code == 0x06:
            return {0x7FFF0000: ALLOWED, 0x80000000: KILLED}.get(operand, operand & 0xFFFF)
        else:
            holds = {0x15: accumulator == operand, 0x35: accumulator >= operand, 0x45: bool(accumulator & operand)}
            place += when_true if holds[code] else when_false


@pytest.mark.parametrize(("machine", "column"), [("x86_64", 0), ("aarch64", 1)])
def test_the_filter_of_each_machine_judges_alike(machine: str, column: int) -> None:
    refused = [numbers[column] for numbers in REFUSED.values()]
    assert {verdict(machine, number, 0, 0, 0) for number in refused if number is not None} == {EPERM}
    call = {name: number for name, numbers in JUDGED.items() if (number := numbers[column]) is not None}
    read, mmap = ((0, 9), (63, 222))[column]
    for number, arguments, expected in (
        (read, (), ALLOWED),
        (mmap, (), ALLOWED),
        (call["kill"], (PID,), ALLOWED),
        (call["kill"], (PID + 1,), EPERM),
        (call["tgkill"], (PID,), ALLOWED),
        (call["tgkill"], (1,), EPERM),
        (call["prlimit64"], (0,), ALLOWED),
        (call["prlimit64"], (PID,), ALLOWED),
        (call["prlimit64"], (1,), EPERM),
        (call["prctl"], (15,), ALLOWED),
        (call["prctl"], (1,), EPERM),
        (call["fcntl"], (0, 1), ALLOWED),
        (call["fcntl"], (0, 15), EPERM),
        (call["ioctl"], (0, 0x5401), ALLOWED),
        (call["ioctl"], (0, 0x8901), EPERM),
        (call["openat"], (0, 0, os.O_RDONLY), ALLOWED),
        (call["openat"], (0, 0, os.O_WRONLY | os.O_TRUNC), ALLOWED),
        (call["openat"], (0, 0, os.O_RDONLY | os.O_TRUNC), EPERM),
        (FIRST_UNKNOWN, (), ENOSYS),
        (0x40000000, (), EPERM),
    ):
        assert verdict(machine, number, *arguments) == expected, (number, arguments)
    assert verdict(machine, read, audit=0x40000003) == KILLED
