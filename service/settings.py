"""What an operator can set, all by environment variables `KILN_*`; docs/operations.md lists them."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from .sandbox.control import Limits


def _home() -> Path:
    caches = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(caches) if os.path.isabs(caches) else Path.home() / ".cache") / "kiln"


class Settings(BaseSettings):
    """Names end in their unit; each field is the variable `KILN_<NAME>`."""

    model_config = SettingsConfigDict(env_prefix="KILN_", frozen=True, extra="ignore")

    home: Path = Field(
        default_factory=_home, description="Directory of the store, when KILN_STORE names no other place."
    )
    store: str = Field(
        default="", description="Path, or URL of the schemes s3, gs, az, memory; empty: $KILN_HOME/store."
    )
    salt: str = Field(
        default="", max_length=256, description="Part of every action digest; a new value disowns the store."
    )
    concurrency: int = Field(
        default_factory=lambda: len(os.sched_getaffinity(0)), ge=1, le=1024, description="Compiles at a time."
    )
    queue: int = Field(default=256, ge=0, description="Compiles that may wait; more are answered 503.")
    compile_deadline_s: float = Field(default=60.0, gt=0, le=3600, description="Seconds one compile may take.")
    compile_memory_mib: int = Field(
        default=2048, ge=64, description="MiB of address space one compile may add to the fork server's."
    )
    compile_file_mib: int = Field(default=256, ge=1, description="MiB one compile may write into a file.")
    compile_output_mib: int = Field(default=256, ge=1, description="MiB one compile may return.")
    answer_memory_mib: int = Field(default=64, ge=0, description="MiB of answers kept in memory for repeated requests.")
    shutdown_grace_s: float = Field(default=70.0, ge=0, description="Seconds that requests may take after SIGTERM.")
    test_hooks: bool = Field(default=False, description="Let requests crash their compile on purpose. For tests only.")

    @property
    def store_location(self) -> str:
        """Where the store is: a path or a URL."""
        return self.store or str(self.home / "store")

    @property
    def limits(self) -> Limits:
        """What one compile may use."""
        return Limits(self.compile_deadline_s, self.compile_memory_mib, self.compile_file_mib)
