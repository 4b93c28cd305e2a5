"""The compiler pipeline of a CPU target."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from passes.boundary import AFFINE, KILN, LLVM, LOOPS, TENSORS, UNBUFFERED
from passes.decompose import decompose
from passes.decompose.split_reductions import split_reductions
from passes.fuse import form_kernels
from passes.layout import block_channels
from passes.lower import lower_to_llvm
from passes.merge_kernels import merge_kernels
from passes.pack_parameters import pack_parameters
from passes.plan.in_place import Reuse
from passes.stage import Stage
from passes.strategy import UNMEASURED, Picker, schedule
from passes.to_linalg.kernels import kernels_to_linalg
from passes.upstream import bufferize
from tensorkiln.dtypes import DType
from tensorkiln.options import CompileOptions

from .long_reductions import split_of
from .machine import QUAD, Machine
from .realise import add_entries, realise_kernels
from .strategies import STRATEGIES, UNSCHEDULED

LEAST_BLOCK = 8
"""Least channels of a block: targets with narrower vectors keep their image layout."""


def cpu_pipeline(
    machine: Machine, options: CompileOptions, measured: Mapping[str, float] = UNMEASURED
) -> tuple[Stage, ...]:
    """kiln -> LLVM dialect."""
    is_scheduled = options.schedule == "auto"
    strategies = STRATEGIES if is_scheduled else UNSCHEDULED
    packs = is_scheduled and options.fusion
    lanes = machine.vectors.lanes(DType.FLOAT32)
    reuse = Reuse.ROWS if options.fusion and is_scheduled else None
    return (
        Stage(
            "decompose",
            partial(
                decompose,
                multiplies_bytes=machine.vectors.together == QUAD,
                multiplies_signed=machine.vectors.has_tiles,
            ),
            KILN,
        ),
        *((Stage("split-reductions", partial(split_reductions, split_of=split_of), KILN),) if packs else ()),
        *(
            (Stage("block-channels", partial(block_channels, block=lanes), KILN),)
            if packs and lanes >= LEAST_BLOCK
            else ()
        ),
        Stage("form-kernels", partial(form_kernels, fusion=options.fusion, chains=packs, reload=machine.reload), KILN),
        Stage("merge-kernels", merge_kernels, KILN),
        Stage("to-linalg", kernels_to_linalg, TENSORS),
        *(
            (Stage("pack-parameters", partial(pack_parameters, strategies=strategies, machine=machine), TENSORS),)
            if packs
            else ()
        ),
        Stage("schedule", partial(schedule, picker=Picker(strategies, machine, measured), reuse=reuse), TENSORS),
        Stage("realise", partial(realise_kernels, machine=machine), LOOPS if is_scheduled else UNBUFFERED),
        *(() if is_scheduled else (Stage("bufferize", bufferize, LOOPS | AFFINE),)),
        Stage("lower", lower_to_llvm, LLVM),
        # Entries are emitted in the LLVM dialect, since they call bodies by their lowered signature.
        Stage("entries", add_entries, LLVM),
    )
