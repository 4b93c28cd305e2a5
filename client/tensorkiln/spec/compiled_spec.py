"""A compiled kernel between compiler and runtime: source for a just-in-time back end, bytes for the others."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from ..nodes.base import Record
from .program_spec import ONES, WireLaunchSize

Code = bytes


class CompiledSpec(Record):
    """`src` is given and `bytes` empty for a just-in-time back end, the other way round otherwise.

    `ast` is the content digest of the kernel it was compiled from, the identity for caches. `var_names` is the order of
    the values in the call. `local_size` None means direct global ids, which is not the same as 1, 1, 1.
    """

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    name: str
    src: str | None
    bytes: Code
    ast: str
    var_names: tuple[str, ...] = ()
    global_size: WireLaunchSize = ONES
    local_size: WireLaunchSize | None = ONES
    buf_count: int = Field(default=0, ge=0)

    @staticmethod
    def from_source(name: str, src: str, ast: str, buf_count: int) -> CompiledSpec:
        """A kernel that its runtime compiles from text."""
        return CompiledSpec(name=name, src=src, bytes=b"", ast=ast, buf_count=buf_count)

    @staticmethod
    def from_bytes(name: str, content: Code, ast: str) -> CompiledSpec:
        """A kernel in machine code, from which its number of buffers is not known."""
        return CompiledSpec(name=name, src=None, bytes=content, ast=ast)

    @staticmethod
    def from_source_with_sizes(
        name: str,
        src: str,
        ast: str,
        global_size: tuple[int, int, int],
        local_size: tuple[int, int, int] | None,
        buf_count: int,
    ) -> CompiledSpec:
        """A kernel compiled from text, with constant launch sizes."""
        return CompiledSpec(
            name=name,
            src=src,
            bytes=b"",
            ast=ast,
            global_size=global_size,
            local_size=local_size,
            buf_count=buf_count,
        )
