"""The interpreter of a process: its garbage, imports that it need not make, and its end."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from types import ModuleType
from typing import Final, NoReturn

_OLD_MODELS: Final = "pydantic.v1"


@contextmanager
def frozen_heap() -> Generator[None]:
    """Exclude the objects made in the block from garbage collection, which takes a fifth of the time of a start."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def end_process(status: int) -> NoReturn:
    """End this process without exit handlers: the store's library sometimes aborts when the interpreter shuts down."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


def load_structlog() -> None:
    """Import structlog without rich, which takes longer to load than the rest and is never used: the log is JSON."""
    if "structlog" in sys.modules or "rich" in sys.modules:
        return
    # None makes the import of this module fail.
    sys.modules["rich"] = None  # pyright: ignore[reportArgumentType]
    try:
        import structlog as structlog
    finally:
        del sys.modules["rich"]


def load_fastapi() -> None:
    """Import FastAPI without what only other applications need, an eighth of a service's start.

    FastAPI imports all of `pydantic.v1` to refuse its models, and there are none here: an empty base class stands for
    it from now on, unless it has been imported. FastAPI's models of the OpenAPI document are built at its first use.
    """
    if "fastapi" in sys.modules:
        return
    import pydantic

    if _OLD_MODELS not in sys.modules:
        empty = ModuleType(_OLD_MODELS)
        vars(empty)["BaseModel"] = type("BaseModel", (), {})
        sys.modules[_OLD_MODELS] = empty
        setattr(pydantic, _OLD_MODELS.rpartition(".")[2], empty)
    # Models inherit the configuration of their base when they are defined.
    config = pydantic.BaseModel.model_config
    config["defer_build"] = True
    try:
        import fastapi as fastapi
    finally:
        del config["defer_build"]
