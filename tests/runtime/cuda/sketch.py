"""CUDA programs written by hand, and the emulated device that runs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tensorkiln.expr import Dim, ceildiv, symbol
from tensorkiln.launch import Variable
from tensorkiln.program import Program
from tensorkiln.schedule import Axis, IterSpace, KernelItem, Mapping, ScheduleContext
from tensorkiln.spec import ProgramSpec
from tensorkiln.target import Target
from tests.runtime.cuda.kernels import THREADS, compile_ptx
from tests.runtime.sketch import Sketch
from tests.simt.driver import EmulatedDriver


def gpu_target() -> Target:
    """The target of the programs."""
    return Target.parse("cuda:sm_90")


@dataclass
class CudaSketch(Sketch):
    """A program under construction; `ir` is what the emulator runs for each code."""

    target: Target = field(default_factory=gpu_target)
    ir: dict[bytes, str] = field(default_factory=dict[bytes, str])

    def kernel(
        self,
        ir: str,
        entry: str,
        buffers: Sequence[int],
        *,
        outs: Sequence[int] = (-1,),
        grid: tuple[Dim, Dim, Dim] = (1, 1, 1),
        block: tuple[Dim, Dim, Dim] | None = (THREADS, 1, 1),
        var_names: Sequence[str] = (),
        **fields: Any,
    ) -> None:
        """Add a kernel and the item that launches it; `outs` are positions in `buffers`, `fields` those of the spec."""
        code = compile_ptx(ir, self.target.arch or "")
        self.ir[code] = ir
        slots = tuple(range(len(buffers)))
        given: dict[str, Any] = {
            "name": entry,
            "entry": entry,
            "artifact": self.store(code),
            "device": "CUDA",
            "global_size": grid,
            "local_size": block,
            "vars": tuple(Variable(name=name, min=low, max=high) for name, (low, high) in self.symbols.items()),
            "var_names": tuple(var_names),
            "globals": slots,
            "outs": tuple(slots[out] for out in outs),
            "ins": slots,
            "buf_count": len(buffers),
            "buffers": tuple(buffers),
        }
        self.kernels.append(ProgramSpec.model_validate(given | fields))
        self.operations.append(
            KernelItem(
                kernel_id=len(self.kernels) - 1,
                kernel_name=entry,
                iter=IterSpace(axes=(Axis(name="i0", size=grid[0]),), mapping=Mapping(block=(0,)), tiles=((),)),
                context=ScheduleContext(global_dims=(1, 1, 1), device="CUDA"),
            )
        )

    def elementwise(self, ir: str, entry: str, buffers: Sequence[int], count: str = "n", **fields: Any) -> None:
        """An elementwise kernel over `count` elements, a symbol."""
        self.kernel(ir, entry, buffers, grid=(ceildiv(symbol(count), THREADS), 1, 1), var_names=(count,), **fields)

    def driver(self, **options: Any) -> EmulatedDriver:
        """A device that knows the program's code."""
        return EmulatedDriver(self.ir, **options)

    def gpu_program(self, driver: EmulatedDriver | None = None) -> Program:
        """The program on a device of its own, or on the one that is given."""
        used = driver or self.driver()
        used.ir.update(self.ir)
        return Program(self.compiled(), self.artifacts.__getitem__, device=used)
