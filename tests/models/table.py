"""Which exports are refused and why; all others are usable. The table of docs/models.md is made of this."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.models.exports import EXPORTS
from tests.models.families import EXPORTERS, FAMILIES, FORMS

_GATHER_ND: Final = "the operator ai.onnx.GatherND is not supported"
_TRILU: Final = "the operator ai.onnx.Trilu is not supported"
_SLICE: Final = "the bounds of a slice of known values depend on symbols"
_EXPAND: Final = "input 1 is computed at run time and shapes depend on it; pass it in `constants`"
_EQUAL: Final = "a shape that depends on symbols is used as data"

REFUSALS: Final[Mapping[str, str]] = {
    "bert-dynamo-sequence": f"Slice node_slice_1: {_SLICE}",
    "bert-torchscript-sequence": f"Slice /Slice: {_SLICE}",
    "gpt-dynamo-sequence": f"Slice node_slice_1: {_SLICE}",
    "gpt-torchscript-sequence": f"Slice /block/Slice: {_SLICE}",
    "llama-dynamo-batch": f"Trilu node_Trilu_121: {_TRILU}",
    "llama-dynamo-sequence": f"Trilu node_Trilu_124: {_TRILU}",
    "llama-torchscript-static": f"Expand /block/Expand: {_EXPAND}",
    "llama-torchscript-batch": f"Equal /block/Equal: {_EQUAL}",
    "llama-torchscript-sequence": f"Equal /block/Equal: {_EQUAL}",
    "vit-torchscript-static": f"Expand /Expand: {_EXPAND}",
    "vit-torchscript-batch": f"Equal /Equal: {_EQUAL}",
    "whisper-dynamo-sequence": f"Slice node_slice_1: {_SLICE}",
    "whisper-torchscript-sequence": f"Slice /Slice: {_SLICE}",
    "dlrm-dynamo-static": f"GatherND node_GatherND_57: {_GATHER_ND}",
    "dlrm-dynamo-batch": f"GatherND node_GatherND_59: {_GATHER_ND}",
}
"""The message of the UnsupportedGraphError for each export that has one."""

USABLE: Final = tuple(export for export in EXPORTS if str(export) not in REFUSALS)
REFUSED: Final = tuple(export for export in EXPORTS if str(export) in REFUSALS)


def rendered(refusals: Mapping[str, str]) -> str:
    """A row for each family and exporter, a column for each form; the reasons, each once, below."""
    reasons = list(dict.fromkeys(_reason(message) for message in refusals.values()))
    lines = [f"| model | exporter | {' | '.join(FORMS)} |", "|---" * (2 + len(FORMS)) + "|"]
    for family in FAMILIES:
        for exporter in EXPORTERS:
            cells = ["-"] * len(FORMS)
            for place, form in enumerate(family.forms):
                message = refusals.get(f"{family.name}-{exporter}-{form}")
                cells[place] = "usable" if message is None else f"refused ({reasons.index(_reason(message)) + 1})"
            lines.append(f"| {family.name} | {exporter} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", *(f"{number}. {reason}" for number, reason in enumerate(reasons, 1))])


def _reason(message: str) -> str:
    """The message without the name of the node."""
    node, _, reason = message.partition(": ")
    return f"`{node.partition(' ')[0]}`: {reason}"
