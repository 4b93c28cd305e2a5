"""Compile targets, with all instruction set extensions listed."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal, Self, cast

from pydantic import (
    AfterValidator,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from .architectures import ARCHITECTURES
from .errors import DeviceError, RequestError
from .nearest import did_you_mean, quoted
from .nodes.base import Record
from .reasons import reason
from .target_names import full_name, unknown_architecture, unknown_target
from .usable_features import usable_features

LINUX_X86_64: Final = "x86_64-unknown-linux-gnu"
LINUX_AARCH64: Final = "aarch64-unknown-linux-gnu"

# Levels of the x86-64 psABI, in LLVM's names; x87, which every x86-64 has, is left out: hosts do not report it.
_V1: Final = ("cmov", "cx8", "fxsr", "mmx", "sse", "sse2")
_V2: Final = (*_V1, "crc32", "cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")
_V3: Final = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
_V4: Final = (*_V3, "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl")

LEVELS: Final[dict[str, tuple[str, str, tuple[str, ...]]]] = {
    "x86-64-v2": (LINUX_X86_64, "x86-64-v2", _V2),
    "x86-64-v3": (LINUX_X86_64, "x86-64-v3", _V3),
    "x86-64-v4": (LINUX_X86_64, "x86-64-v4", _V4),
    "aarch64": (LINUX_AARCH64, "generic", ("fp-armv8", "neon")),
}
"""Triple, CPU and features of each `cpu:<level>`."""

_Name = Annotated[str, Field(strict=True, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}$")]
_Features = Annotated[tuple[_Name, ...], Field(max_length=512), AfterValidator(lambda names: tuple(sorted(set(names))))]


class Target(Record):
    """A target of compilation.

    `cpu`: `triple`, `features` (the complete instruction set beyond the architecture's baseline, in LLVM's names,
    sorted) and `cpu`, by which code is tuned. `cuda`: `arch`, one of `ARCHITECTURES`, such as `sm_90`. `rocm`: `arch`,
    such as `gfx942`.
    """

    kind: Literal["cpu", "cuda", "rocm"]
    triple: _Name | None = None
    cpu: _Name | None = None
    features: _Features = ()
    arch: _Name | None = None

    @model_validator(mode="after")
    def _fields_belong_to_the_kind(self) -> Self:
        if self.kind == "cpu":
            if self.triple is None or self.cpu is None or self.arch is not None:
                raise ValueError("a cpu target has triple, cpu and features, and no arch")
        elif self.arch is None or self.triple is not None or self.cpu is not None or self.features:
            raise ValueError(f"a {self.kind} target has an arch and nothing else")
        elif not self.arch.startswith(_ARCH_PREFIX[self.kind]):
            hint = f"; {unknown_architecture(self.arch)}" if self.kind == "cuda" else ""
            raise ValueError(f"the arch of a {self.kind} target starts with {_ARCH_PREFIX[self.kind]}{hint}")
        elif self.kind == "cuda" and self.arch not in ARCHITECTURES:
            raise ValueError(unknown_architecture(self.arch))
        return self

    @model_serializer(mode="wrap")
    def _only_the_fields_of_the_kind(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields = ("kind", "triple", "cpu", "features") if self.kind == "cpu" else ("kind", "arch")
        return {name: value for name, value in serialize(self).items() if name in fields}

    @classmethod
    def parse(cls, source: Target | str | Mapping[str, object]) -> Target:
        """Parse a shorthand or a JSON object.

        Shorthands: `cpu` (this machine's architecture, x86-64 at level 3), `cpu:native` (exactly this machine),
        `cpu:x86-64-v2` to `-v4`, `cpu:aarch64`, `cuda:sm_90`, `rocm:gfx942`; all but `cpu` also without their kind, as
        `x86-64-v3` or `sm_90`; and `cuda`, the newest known architecture. RequestError for anything else; DeviceError
        for `cpu:native` when llvmlite is not installed.
        """
        if isinstance(source, Target):
            return source
        if isinstance(source, str):
            return _from_shorthand(source)
        if not isinstance(source, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers are users
            raise RequestError(f"a target is a name such as cpu or sm_90, not {quoted(source)}", pointers=["/target"])
        try:
            return cls.model_validate(dict(source))
        except ValidationError as error:
            raise RequestError(f"the target is invalid: {_reasons(error)}", pointers=["/target"]) from error

    @property
    def base_device_key(self) -> str:
        """The device kind without its number, by which compiled bytes are shared: CPU, CUDA or ROCM."""
        return self.kind.upper()

    @property
    def home_device(self) -> str:
        """The device of a graph's inputs when it runs on this target: the first of its kind."""
        return self.kind.upper()


# Prefixes of LLVM's tuning flags: the definitions named Tuning in X86.td and AArch64Features.td.
_TUNING: Final = (
    *("allow-light-", "arith-", "avoid-", "branchfusion", "false-deps-", "fast-", "faster-", "fuse-", "idiv", "lea-"),
    *("macrofusion", "no-bypass-delay", "pad-short-", "predictable-select-", "prefer-", "sbb-dep-", "slow-", "use-"),
)
_ARCH_PREFIX: Final = {"cuda": "sm_", "rocm": "gfx"}


def _from_shorthand(text: str) -> Target:
    kind, _, detail = full_name(text).partition(":")
    if kind in _ARCH_PREFIX and detail:
        return Target.parse({"kind": kind, "arch": detail})
    if kind == "cpu" and detail == "native":
        return _native()
    level = _default_level() if text == "cpu" else detail
    if kind != "cpu" or level not in LEVELS:
        raise RequestError(unknown_target(text), pointers=["/target"])
    triple, cpu, features = LEVELS[level]
    return Target(kind="cpu", triple=triple, cpu=cpu, features=features)


def _reasons(error: ValidationError) -> str:
    found = error.errors(include_url=False)
    unknown = [str(each["loc"][-1]) for each in found if each["type"] == "extra_forbidden"]
    if unknown:
        return f"there is no field {quoted(unknown[0])}{did_you_mean(unknown[0], Target.model_fields)}"
    return "; ".join(reason(each) for each in found)


def _default_level() -> str:
    return "aarch64" if platform.machine().lower() in ("aarch64", "arm64") else "x86-64-v3"


def _native() -> Target:
    try:
        from llvmlite import binding
    except ImportError as error:
        message = (
            "cpu:native asks LLVM about this machine, but llvmlite is not installed: pip install 'tensorkiln[cpu]'"
        )
        raise DeviceError(message) from error
    ask = cast("Callable[[], Mapping[str, bool]]", binding.get_host_cpu_features)
    features = tuple(name for name, is_there in usable_features(ask()).items() if is_there)
    triple, cpu = binding.get_process_triple(), binding.get_host_cpu_name()
    return Target(kind="cpu", triple=triple, cpu=cpu, features=features)


def missing_features(target: Target, host_features: Mapping[str, bool]) -> tuple[str, ...]:
    """The features that `target` needs and a host lacks; `host_features` are those of the host, by LLVM's names.

    LLVM's tuning flags are ignored: code tuned for another processor runs on this one.
    """
    return tuple(name for name in target.features if not (_is_tuning(name) or host_features.get(name, False)))


def _is_tuning(feature: str) -> bool:
    return feature.startswith(_TUNING)
