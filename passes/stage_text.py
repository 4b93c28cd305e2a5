"""A module between two stages as text, which says after which stage it was written, and can be read and continued."""

from __future__ import annotations

from dialect.mlir import ir

STAGE = "kiln.stage"
"""On a module that is written: the stage that left it."""


def write(module: ir.Module, stage: str, *, locations: bool = False) -> str:
    """The text of the module that `stage` left; with `locations`, each op's node too, which errors and items name."""
    operation = module.operation
    operation.attributes[STAGE] = ir.StringAttr.get(stage, module.context)
    try:
        return operation.get_asm(enable_debug_info=locations) + "\n"
    finally:
        del operation.attributes[STAGE]


def read(text: str, context: ir.Context) -> tuple[ir.Module, str]:
    """A module in `context`, and the stage that left it; empty where the text does not say.

    ir.MLIRError when it is not a module that MLIR verifies.
    """
    module = ir.Module.parse(text, context)
    attributes = module.operation.attributes
    if STAGE not in attributes:
        return module, ""
    stage = ir.StringAttr(attributes[STAGE]).value
    del attributes[STAGE]
    return module, stage
