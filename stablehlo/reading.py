"""Bytes from outside as a module: MLIR text or a portable artifact, within limits."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any, Final

from dialect.mlir import PassManager, ir, search_dialects_in, stablehlo
from tensorkiln.errors import InvalidGraphError, LimitExceededError, UnsupportedGraphError

from .bytecode import BytecodeError, without_attributes_of

MAX_NESTING: Final = 200
"""Levels of brackets in a text: the parser of MLIR goes down one frame of the stack, or several, for each."""
_SAID: Final = 400
"""Characters that are shown of an error message of MLIR's parser."""
# Strings and comments may hold brackets that open nothing. Of the operators, only those are passed over that seem to
# close a bracket: to count too many levels is safe.
_TOKEN: Final = re.compile(rb'"(?:[^"\\\n]|\\.)*"|"|//[^\n]*|->|=>|>=|[({\[<]|[)}\]>]')
_OPENING: Final = frozenset(b"({[<")
MAGIC: Final = b"ML\xefR"
"""How MLIR bytecode begins."""
_SHARDY: Final = "sdy"
"""The dialect in which JAX says where values lie: what it says in attributes changes no value."""


def context() -> ir.Context:
    """A context with the dialects that a module may have."""
    made = ir.Context()
    made.enable_multithreading(False)
    # What JAX says of shardings in attributes is nothing here; an operation that is unknown is refused by its name.
    made.allow_unregistered_dialects = True
    stablehlo.register_dialect(made, True)
    _register_passes()
    # No binding loads CHLO, but a pass that may make operations of it does.
    manager = PassManager.parse("builtin.module(func.func(stablehlo-complex-math-expander))", made)
    manager.run(ir.Module.parse("module {}", made).operation)
    return made


def read_text(text: str, within: ir.Context) -> ir.Module:
    """The module that a text spells. InvalidGraphError when it spells none, LimitExceededError when it is too deep."""
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
    """The module of a portable artifact. InvalidGraphError when it is none, or of a version that is not read."""
    where = "/stablehlo/artifact"
    if not artifact.startswith(MAGIC):
        raise InvalidGraphError("The artifact does not begin as MLIR bytecode does.", pointers=[where])
    is_sharded = f"{_SHARDY}\0".encode() in artifact
    if is_sharded:
        # Attributes of a dialect that is not known cannot be read, where they are not text.
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
    """Within it InvalidGraphError for names that are no text: bytecode may have any bytes there."""
    try:
        yield
    except UnicodeError as error:
        raise _no_text() from error
    except RuntimeError as error:
        # What the bindings say of bytes that are not UTF-8.
        if "str_from_cstr_and_size" not in str(error):
            raise
        raise _no_text() from error


def _no_text() -> InvalidGraphError:
    return InvalidGraphError("A name in the module is not UTF-8.", pointers=["/stablehlo"])


def legalize(module: ir.Module) -> None:
    """Have the operations of CHLO spelled by those of StableHLO."""
    manager = PassManager.parse("builtin.module(func.func(chlo-legalize-to-stablehlo))", module.context)
    try:
        manager.run(module.operation)
    except ir.MLIRError as error:
        raise _refused("/stablehlo", "An operation of CHLO was not legalized", error) from None


def nesting(text: bytes) -> int:
    """The most brackets that are open at once in a text of MLIR. InvalidGraphError for a string that does not end."""
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
        # What closes nothing is an operator's, or wrong.
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
