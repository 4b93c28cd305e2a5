"""Reading of untrusted MLIR text and portable artifacts, within limits."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any, Final

from dialect.mlir import PassManager, ir, search_dialects_in, stablehlo
from tensorkiln.errors import InvalidGraphError, LimitExceededError, UnsupportedGraphError

from .bytecode import BytecodeError, without_attributes_of

MAX_NESTING: Final = 200
"""The most nested brackets in a text, since MLIR's parser recurses at each."""
_SAID: Final = 400
"""The most characters of an error message of MLIR's parser in an error."""
# Skips strings, comments, and the operators that look like closing brackets. Counting too many levels is safe.
_TOKEN: Final = re.compile(rb'"(?:[^"\\\n]|\\.)*"|"|//[^\n]*|->|=>|>=|[({\[<]|[)}\]>]')
_OPENING: Final = frozenset(b"({[<")
MAGIC: Final = b"ML\xefR"
"""The magic bytes of MLIR bytecode."""
_SHARDY: Final = "sdy"
"""The dialect of JAX's shardings; its attributes do not affect values."""


def context() -> ir.Context:
    """An MLIR context with the dialects that a module may use."""
    made = ir.Context()
    made.enable_multithreading(False)
    # Sharding attributes of JAX are ignored; unknown operations are refused by name.
    made.allow_unregistered_dialects = True
    stablehlo.register_dialect(made, True)
    _register_passes()
    # The bindings cannot load CHLO, but a pass that may create its operations loads it.
    manager = PassManager.parse("builtin.module(func.func(stablehlo-complex-math-expander))", made)
    manager.run(ir.Module.parse("module {}", made).operation)
    return made


def read_text(text: str, within: ir.Context) -> ir.Module:
    """Parse MLIR text. InvalidGraphError for invalid text, LimitExceededError for brackets nested too deeply."""
    depth = nesting(text.encode())
    if depth > MAX_NESTING:
        raise LimitExceededError(
            f"The text of the module nests brackets {depth} levels deep; the limit is {MAX_NESTING}.",
            pointers=["/stablehlo/text"],
            limit="nesting",
            maximum=MAX_NESTING,
            actual=depth,
        )
    try:
        return ir.Module.parse(text, within)
    except (ir.MLIRError, ValueError) as error:
        raise _refused("/stablehlo/text", "The text is not a StableHLO module", error) from None


def read_artifact(artifact: bytes, within: ir.Context) -> ir.Module:
    """Read a portable artifact.

    InvalidGraphError for an invalid artifact or an unsupported version; UnsupportedGraphError for unreadable parts of
    the dialect sdy.
    """
    where = "/stablehlo/artifact"
    if not artifact.startswith(MAGIC):
        raise InvalidGraphError("The artifact does not begin as MLIR bytecode does.", pointers=[where])
    is_sharded = f"{_SHARDY}\0".encode() in artifact
    if is_sharded:
        # The reader cannot parse binary attributes of an unknown dialect.
        with suppress(BytecodeError):
            artifact = without_attributes_of(_SHARDY, artifact)
    said: list[str] = []

    def hear(diagnostic: Any) -> bool:
        said.append(str(diagnostic.message))
        return True

    handler = within.attach_diagnostic_handler(hear)
    try:
        return stablehlo.deserialize_portable_artifact(within, artifact)
    except (ir.MLIRError, ValueError, RuntimeError) as error:
        if is_sharded:
            raise UnsupportedGraphError(
                "The artifact has parts of the dialect sdy, which partitions programs, that are not read here. Export "
                "it with jax.config.update('jax_use_shardy_partitioner', False).",
                pointers=[where],
            ) from None
        shown = "; ".join(said) or str(error)
        raise _refused(where, "The artifact is not a portable artifact of a version that is read here", shown) from None
    finally:
        handler.detach()


@contextmanager
def of_text() -> Generator[None]:
    """Raise InvalidGraphError for names in the module that are not UTF-8, which bytecode may contain."""
    try:
        yield
    except UnicodeError as error:
        raise _no_text() from error
    except RuntimeError as error:
        # The bindings' error for bytes that are not UTF-8.
        if "str_from_cstr_and_size" not in str(error):
            raise
        raise _no_text() from error


def _no_text() -> InvalidGraphError:
    return InvalidGraphError("A name in the module is not UTF-8.", pointers=["/stablehlo"])


def legalize(module: ir.Module) -> None:
    """Replace operations of CHLO by those of StableHLO."""
    manager = PassManager.parse("builtin.module(func.func(chlo-legalize-to-stablehlo))", module.context)
    try:
        manager.run(module.operation)
    except ir.MLIRError as error:
        raise _refused("/stablehlo", "An operation of CHLO was not legalized", error) from None


def nesting(text: bytes) -> int:
    """The maximum nesting of brackets in MLIR text. InvalidGraphError for an unterminated string."""
    depth = most = 0
    for match in _TOKEN.finditer(text):
        token = match[0]
        if len(token) > 1:
            continue
        if token == b'"':
            line = text.count(b"\n", 0, match.start()) + 1
            raise InvalidGraphError(
                f"A string in line {line} of the module does not end.", pointers=["/stablehlo/text"]
            )
        depth += 1 if token[0] in _OPENING else -1
        # An unmatched closing bracket is part of an operator, or a syntax error that the parser reports.
        depth = max(depth, 0)
        most = max(most, depth)
    return most


_registered: list[bool] = []


def _register_passes() -> None:
    if not _registered:
        stablehlo.register_stablehlo_passes()
        search_dialects_in(f"{__package__}.dialects")
        _registered.append(True)


def _refused(pointer: str, what: str, error: object) -> InvalidGraphError:
    said = " ".join("".join(char if char.isprintable() else " " for char in str(error)).split())
    return InvalidGraphError(f"{what}: {said[:_SAID]}", pointers=[pointer])
