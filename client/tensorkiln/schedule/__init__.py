"""The schedule of a program: kernels with their loops, transfers, synchronization, host callbacks, dependencies.

Every var of a schedule that belongs to a `CompiledProgram` (`buf_var`, `src_var`, `input_vars`, `dep_vars`, …) is the
`id` of one of the program's buffers. Extents, sizes and strides may be symbolic.
"""

from .context import ScheduleContext, ensure3, work_groups
from .graph import BarrierReason, Dependency, FusionBarrier, FusionOpportunity, Schedule
from .hints import LoopHint, Pipeline, Prefetch, ReductionPlan, Scalar, Unroll, Vectorize
from .items import ItemAnalysis, ScheduleItem
from .iteration import Axis, IterSpace, Mapping
from .memory import Allocation, BufferInfo, Layout, contiguous_strides, size_bytes_of_layout
from .operations import (
    HostCallback,
    KernelItem,
    Loop,
    MemoryTransfer,
    Operation,
    OpRef,
    SharedArray,
    Synchronization,
)
from .order import (
    ScheduleError,
    compute_dependents,
    estimate_peak_memory,
    find_critical_path,
    sum_estimated_runtime_ns,
    topological_order,
)

__all__ = [
    "Allocation",
    "Axis",
    "BarrierReason",
    "BufferInfo",
    "Dependency",
    "FusionBarrier",
    "FusionOpportunity",
    "HostCallback",
    "ItemAnalysis",
    "IterSpace",
    "KernelItem",
    "Layout",
    "Loop",
    "LoopHint",
    "Mapping",
    "MemoryTransfer",
    "OpRef",
    "Operation",
    "Pipeline",
    "Prefetch",
    "ReductionPlan",
    "Scalar",
    "Schedule",
    "ScheduleContext",
    "ScheduleError",
    "ScheduleItem",
    "SharedArray",
    "Synchronization",
    "Unroll",
    "Vectorize",
    "compute_dependents",
    "contiguous_strides",
    "ensure3",
    "estimate_peak_memory",
    "find_critical_path",
    "size_bytes_of_layout",
    "sum_estimated_runtime_ns",
    "topological_order",
    "work_groups",
]
