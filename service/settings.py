"""The settings of an operator, `KILN_*`, and the lines about errors that keep a process from starting."""

from __future__ import annotations

import logging
import os
import platform
import re
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError
from pydantic_core import PydanticUseDefault
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from tensorkiln.errors import TensorkilnError
from tensorkiln.reasons import reason
from tensorkiln.user_directories import user_cache_directory

from .identity.register import Issuer
from .process.memory_limit import ITSELF_MIB
from .sandbox.control import Limits
from .sandbox.levels import Level, Wall
from .timeouts import longest_answer_s

_PREFIX: Final = "KILN_"
_MOST_MIB: Final = 1 << 24
"""More than any machine has; the kernel takes limits below 2^63 bytes."""
_LEAST_INTAKE_MIB: Final = 86
"""Smallest intake in which the largest body of one tenant leaves room for others."""
_LEAST_MEMORY_MIB: Final = 256
_NEAR: Final = 0.75
"""Least similarity of a misspelt name to a setting; a less similar one may belong to other software."""
_OTHERS: Final = frozenset(
    (
        *("API_KEY", "CACHE_DIR", "CACHE_MIB", "CONFIG_DIR", "MIN_ISOLATION", "OFFLINE", "PTXAS", "STARTUP_TIMEOUT_S"),
        *("TIMEOUT_S", "TRUSTED_KEYS", "URL"),
    )
)
"""Variables of the client, and of the assembler for CUDA targets, without their prefix."""
_FOLLOWS: Final = "default_factory_not_called"
"""The error of a setting whose default depends on one that is wrong itself."""
_FIELD = re.compile(r'field "(\w+)"')


def _unless_empty(path: Any) -> Any:
    """Treat an empty path as unset: it would mean the working directory."""
    if path == "":
        raise PydanticUseDefault
    return path


def _placed(path: Path) -> Path:
    """Resolve a directory as the SDK does."""
    try:
        return path.expanduser().absolute()
    except RuntimeError as error:
        raise ValueError(f"{path} names a home directory that does not exist here") from error


Mib: TypeAlias = Annotated[int, Field(ge=0)]
Hours: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Location: TypeAlias = Annotated[str, BeforeValidator(_unless_empty)]
Directory: TypeAlias = Annotated[Path, BeforeValidator(_unless_empty), AfterValidator(_placed)]


class Settings(BaseSettings):
    """Names end in their unit; each field is the variable `KILN_<NAME>`, which docs/operations.md describes."""

    model_config = SettingsConfigDict(env_prefix="KILN_", frozen=True, extra="ignore", allow_inf_nan=False)

    home: Directory = Field(default_factory=user_cache_directory)
    store: Location = Field(default_factory=lambda known: str(known["home"] / "store"))
    """A path or a URL."""
    keys: Directory = Field(default_factory=lambda known: known["home"] / "keys")
    identity: Directory = Field(default_factory=lambda known: known["home"] / "identity")
    public_keys: Directory | None = None
    worker: str = Field(default_factory=platform.node, max_length=255)
    store_max_mib: Mib = 0
    store_max_age_h: Hours = 0.0
    salt: str = Field(default="", max_length=256)
    concurrency: int = Field(default_factory=lambda: len(os.sched_getaffinity(0)), ge=1, le=1024)
    queue: int = Field(default=256, ge=0)
    queue_age_s: float = Field(default=60.0, gt=0)
    farm: bool = False
    farm_width: int = Field(default=64, ge=1, le=10_000)
    farm_ahead: float = Field(default=2.0, ge=1.0)
    auth: Literal["auto", "off"] = "auto"
    oidc: tuple[Issuer, ...] = ()
    tenant_concurrency: int = Field(default=0, ge=0)
    tenant_in_flight: int = Field(default=128, ge=0)
    tenant_cpu_s: float = Field(default=0.0, ge=0)
    tenant_window_s: float = Field(default=60.0, gt=0)
    compile_deadline_s: float = Field(default=60.0, ge=1, le=3600)
    compile_memory_mib: int = Field(default=2048, ge=64, le=_MOST_MIB)
    compile_file_mib: int = Field(default=128, ge=1, le=_MOST_MIB)
    compile_output_mib: int = Field(default=256, ge=1, le=_MOST_MIB)
    intake_mib: int = Field(default=256, ge=_LEAST_INTAKE_MIB)
    memory_mib: int | None = Field(default=None, ge=_LEAST_MEMORY_MIB)
    arrival_s: float = Field(default=20.0, gt=0)
    answer_memory_mib: int = Field(default=64, ge=0)
    isolation: Wall = Wall.AUTO
    require_isolation: Level = Level.PROCESS
    shutdown_notice_s: float = Field(default=0.0, ge=0)
    shutdown_grace_s: float = Field(
        default_factory=lambda known: longest_answer_s(known["compile_deadline_s"], known["queue_age_s"]), ge=0
    )
    """Seconds that running requests may take after SIGTERM."""
    disk_floor_mib: int = Field(default=2048, ge=0)
    ready_queue_age_s: float = Field(default=30.0, gt=0)
    metrics: Literal["admin", "public"] = "admin"
    worker_metrics: str = ""
    log: Literal["debug", "info", "warning", "error"] = "info"
    tracing: bool = False

    def model_post_init(self, context: Any, /) -> None:
        """Warn about misspelt variables, which would have no effect unnoticed."""
        for name, meant in misspelt(os.environ).items():
            logging.getLogger(__name__).warning("%s is not a setting; is %s meant?", name, meant)

    @property
    def width(self) -> int:
        """Maximum concurrent compiles of this service, here or in a farm."""
        return self.farm_width if self.farm else self.concurrency

    @property
    def memory_cap_mib(self) -> int:
        """Maximum MiB of resident memory, including a large body about to be accepted."""
        if self.memory_mib is not None:
            return self.memory_mib
        return ITSELF_MIB + self.intake_mib + self.answer_memory_mib

    def for_one_of(self, workers: int) -> Settings:
        """Settings for each of `workers` processes, which divide the machine; no share is smaller than one needs."""
        shared = {
            "concurrency": max(1, self.concurrency // workers),
            "farm_width": max(1, self.farm_width // workers),
            "queue": -(-self.queue // workers),
            "intake_mib": max(_LEAST_INTAKE_MIB, self.intake_mib // workers),
            "answer_memory_mib": self.answer_memory_mib // workers,
            "memory_mib": self.memory_mib and max(_LEAST_MEMORY_MIB, self.memory_mib // workers),
        }
        return self.model_copy(update=shared)

    @property
    def answer_s(self) -> float:
        """Seconds that an answer may take, in the queue too."""
        return longest_answer_s(self.compile_deadline_s, self.queue_age_s)

    @property
    def limits(self) -> Limits:
        return Limits(self.compile_deadline_s, self.compile_memory_mib, self.compile_file_mib)


def misspelt(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that resemble a setting without being one, each with the nearest setting."""
    known = sorted({field.upper() for field in Settings.model_fields} | _OTHERS)
    # pydantic reads the names in any case.
    ours = {
        name: name.upper().removeprefix(_PREFIX) for name in sorted(environment) if name.upper().startswith(_PREFIX)
    }
    near = {name: get_close_matches(stated, known, n=1, cutoff=_NEAR) for name, stated in ours.items()}
    return {name: _PREFIX + found[0] for name, found in near.items() if found and found[0] != ours[name]}


def read_settings() -> Settings | None:
    """Read the settings of this process; None when they are invalid, with the reasons on standard error."""
    try:
        return Settings()
    except (SettingsError, ValidationError) as error:
        print(*error_lines(error), sep="\n", file=sys.stderr)
        return None


def argument(kind: Any) -> Callable[[str], Any]:
    """The function by which argparse reads an argument of this type; its errors are those of settings."""

    def parse(text: str) -> Any:
        try:
            return TypeAdapter(kind).validate_python(text)
        except ValidationError as error:
            raise ArgumentTypeError(reason(error.errors(include_url=False)[0], subject="it")) from None

    return parse


def error_lines(error: TensorkilnError | OSError | SettingsError | ValidationError) -> list[str]:
    """One line per error."""
    if isinstance(error, ValidationError):
        found = error.errors(include_url=False, include_input=False)  # which may be a secret
        return [_setting(each["loc"], reason(each, subject="it")) for each in found if each["type"] != _FOLLOWS]
    if isinstance(error, SettingsError):
        field = _FIELD.search(str(error))
        return [_setting([field[1] if field else "*"], "It is not the JSON that it has to be")]
    if isinstance(error, OSError):
        return [f"The service cannot start: {' '.join(str(error).split())}."]
    return [" ".join(str(error).split())]


def _setting(where: Any, what: str) -> str:
    return f"KILN_{'_'.join(str(step) for step in where).upper()}: {what}; docs/operations.md lists the settings."
