"""Single kernels on a GPU: a runtime for `tensorkiln.device.Device`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256

from ...errors import CallInputError, DeviceError
from ...launch import LaunchDims
from ...spec import CompiledSpec
from .context import Context
from .driver import Arguments, Driver, Function
from .limits import check_launch
from .modules import Module
from .streams import Stream


@dataclass(frozen=True)
class CudaKernel:
    """A loaded kernel. Stateless: several threads may run it at the same time on different buffers."""

    name: str
    buf_count: int
    var_names: tuple[str, ...]
    function: Function
    module: Module
    context: Context
    stream: Stream

    def execute(
        self,
        buffers: Sequence[int],
        vals: Sequence[int],
        global_size: tuple[int, int, int] | None = None,
        local_size: tuple[int, int, int] | None = None,
    ) -> None:
        """Run the kernel and wait for its end.

        `buffers` are device addresses in call order and `vals` 64-bit values in the order of `var_names`. `global_size`
        is in blocks, `local_size` in threads per block; both default to 1, 1, 1. CallInputError when a count is wrong,
        CallBoundsError when the device does not allow the launch, DeviceError when it fails.
        """
        if len(buffers) != self.buf_count:
            raise CallInputError(f"kernel {self.name} takes {self.buf_count} buffers, got {len(buffers)}")
        if len(vals) != len(self.var_names):
            raise CallInputError(f"kernel {self.name} takes {len(self.var_names)} values, got {len(vals)}")
        driver, grid, block = self.context.driver, global_size or (1, 1, 1), local_size or (1, 1, 1)
        check_launch(self.name, LaunchDims(grid, block), 0, self.function, driver.properties)
        with driver.scope():
            driver.launch(self.function, grid, block, 0, Arguments([*buffers, *vals]), self.stream.handle)
            driver.synchronize(self.stream.handle)


def cuda_runtime(driver: Driver) -> Callable[[CompiledSpec], CudaKernel]:
    """The runtime factory of a GPU: kernels from PTX (`src`) or from a cubin (`bytes`), loaded once by their content.

    DeviceError when the code cannot be loaded.
    """
    context = Context.of(driver)

    def load(compiled: CompiledSpec) -> CudaKernel:
        code = compiled.bytes or (compiled.src or "").encode()
        if not code:
            raise DeviceError(f"kernel {compiled.name} has no code; a GPU runs PTX or a cubin")
        with driver.scope():
            module = context.module(sha256(code).hexdigest(), code)
            return CudaKernel(
                name=compiled.name,
                buf_count=compiled.buf_count,
                var_names=compiled.var_names,
                function=module.function(compiled.name),
                module=module,
                context=context,
                stream=Stream.create(driver),
            )

    return load
