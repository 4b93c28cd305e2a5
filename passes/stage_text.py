"""A module between two stages as text with the name of its last stage, which can be read back and continued."""

from __future__ import annotations

from dialect.mlir import ir

STAGE = "kiln.stage"
"""Attribute of a written module: its last stage."""


def write(module: ir.Module, stage: str, *, locations: bool = False) -> str:
    """The text of the module that `stage` left; with `locations`, also the node of each op, as errors name it."""
    operation = module.operation
    operation.attributes[STAGE] = ir.StringAttr.get(stage, module.context)
    try:
        return operation.get_asm(enable_debug_info=locations) + "\n"
    finally:
        del operation.attributes[STAGE]


def read(text: str, context: ir.Context) -> tuple[ir.Module, str]:
    """A module in `context`, and its last stage; empty if the text does not name one.

    Raises ir.MLIRError if the text is not a valid module.
    """
    module = ir.Module.parse(text, context)
    attributes = module.operation.attributes
    if STAGE not in attributes:
        return module, ""
    stage = ir.StringAttr(attributes[STAGE]).value
    del attributes[STAGE]
    return module, stage
