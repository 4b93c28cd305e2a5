"""Names of targets: expansion of short names, and suggestions for unknown ones."""

from __future__ import annotations

import re
from typing import Final

from .architectures import ARCHITECTURES, Scope
from .nearest import nearest, quoted

LEVEL_NAMES: Final = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64")
NEWEST_CUDA: Final = max(
    (each for each in ARCHITECTURES.values() if each.scope is Scope.LATER), key=lambda each: each.capability
).name
"""The newest architecture whose PTX runs on later devices, too."""

_KINDS: Final = {"sm_": "cuda:", "gfx": "rocm:", "x86-64": "cpu:", "aarch64": "cpu:"}
_MEANT: Final = {
    **dict.fromkeys(("gpu", "nvidia", "ptx"), "cuda"),
    **dict.fromkeys(("amd", "hip", "amdgpu"), "rocm:gfx942"),
    **dict.fromkeys(("arm64", "arm", "armv8", "aarch64-linux"), "aarch64"),
    **dict.fromkeys(("x86", "x86_64", "x64", "amd64", "intel"), "cpu"),
    **dict.fromkeys(("avx2", "haswell", "v3"), "x86-64-v3"),
    **dict.fromkeys(("avx512", "avx-512", "skylake", "v4"), "x86-64-v4"),
    **dict.fromkeys(("host", "local", "this"), "native"),
}
_ARCH: Final = re.compile(r"(?:cuda:)?(?:sm|compute)?[_-]?(\d+)\.?(\d?)([af]?)$")


def full_name(text: str) -> str:
    """A target's name with its kind: `cpu:x86-64-v3` of `x86-64-v3`, `cuda:sm_90` of `sm_90`.

    `native` is `cpu:native`, and `cuda` the newest known architecture. Any other text is returned unchanged.
    """
    name = text.strip()
    if name == "cuda":
        return f"cuda:{NEWEST_CUDA}"
    if name == "native":
        return "cpu:native"
    prefix = next((kind for begin, kind in _KINDS.items() if name.startswith(begin)), "")
    return prefix + name


def note(text: str) -> str | None:
    """A note about an ambiguous name, `cuda`; None for other names."""
    if text.strip() != "cuda":
        return None
    return (
        f"the target cuda is cuda:{NEWEST_CUDA}, the newest architecture that is known: its code runs on no older GPU. "
        "Name the oldest one that has to run it, such as sm_80"
    )


def unknown_target(text: str) -> str:
    """The message for an unknown target."""
    return f"unknown target {quoted(text)}{_hint(text)}"


def unknown_architecture(arch: str) -> str:
    """The message for an unknown CUDA architecture."""
    spelled = _spelled(arch)
    meant = f"did you mean {spelled}?" if spelled else f"known are {', '.join(ARCHITECTURES)}"
    return f"unknown CUDA architecture {quoted(arch)}; {meant}"


def _hint(text: str) -> str:
    name = text.strip().lower().replace("x86_64-", "x86-64-").replace("x86_64_", "x86-64-")
    arch = _spelled(name)
    if arch is not None:
        return f"; did you mean {arch}?"
    names = ("cpu", "cpu:native", *LEVEL_NAMES, "cuda")
    if full_name(name) != text and name in names:
        return f"; did you mean {name}?"
    bare = name.partition(":")[2] or name
    meant = _MEANT.get(bare) or nearest(bare, names)
    others = "cpu, cpu:native, " + ", ".join(LEVEL_NAMES) + ", cuda, sm_<n>, gfx<n>"
    return f"; did you mean {meant}?" if meant else f": use {others}, or an object"


def _spelled(text: str) -> str | None:
    """The architecture meant by another spelling, such as `cuda:90`, `sm90` or `8.6`; None when there is none."""
    found = _ARCH.fullmatch(text.strip().lower())
    name = f"sm_{found[1]}{found[2]}{found[3]}" if found else ""
    return name if name in ARCHITECTURES and name != text else None
