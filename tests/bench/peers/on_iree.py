"""The rows in IREE, from StableHLO lowered by JAX, and the networks by IREE's own ONNX importer."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import iree.runtime as runtime
import onnx
from iree.compiler.api import Output, Session, Source

from tests.bench.peers.engine import CannotExpress, Compile, Engine, Task

FLAGS = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
    "--iree-opt-level=O3",
)

OPSET = 17

WRITTEN = Path(sys.prefix) / "written"
"""A cache of StableHLO by digest of its sources, so that a cold start does not include JAX."""


def compiled(text: bytes, flags: Sequence[str]) -> bytes:
    """The compiled module. `CannotExpress` if the compiler refuses it, with diagnostics on standard error."""
    session = Session()
    session.set_flags(*FLAGS, *flags)
    source = Source.wrap_buffer(session, text + b"\0")
    invocation = session.invocation()
    invocation.enable_console_diagnostics()
    if not (invocation.parse_source(source) and invocation.execute()):
        raise CannotExpress("its compiler refuses it")
    output = Output.open_membuffer()
    invocation.output_vm_bytecode(output)
    return bytes(output.map_memory())


def stablehlo(task: Task) -> bytes:
    """The row as StableHLO, lowered by JAX."""
    rows = Path(__file__).with_name("on_jax.py").read_bytes()
    shapes = [(array.shape, array.dtype.name) for array in task.inputs]
    path = WRITTEN / f"{hashlib.sha256(rows + repr((task.row, shapes)).encode()).hexdigest()}.mlir"
    if not path.exists():
        import jax

        from tests.bench.peers.on_jax import ROWS

        if task.row not in ROWS:
            raise CannotExpress("is not written in JAX")
        function = ROWS[task.row]
        if task.row == "G1":
            # IREE compiles JAX's bounds check of each index to slow code.
            function = _unchecked
        WRITTEN.mkdir(exist_ok=True)
        path.write_text(jax.jit(lambda *inputs: function(*inputs)).lower(*task.inputs).as_text())
    return path.read_bytes()


def _unchecked(table: Any, places: Any) -> Any:
    return table.at[places].get(mode="promise_in_bounds")


def imported(model: Path) -> bytes:
    """Import an ONNX model, upgraded to `OPSET` if it is older. `CannotExpress` if the importer refuses it."""
    (version,) = (each.version for each in onnx.load(model, load_external_data=False).opset_import if not each.domain)
    text = model.with_suffix(".mlir")
    command = [sys.executable, "-m", "iree.compiler.tools.import_onnx", str(model), "-o", str(text)]
    newer = [f"--opset-version={OPSET}"] if version < OPSET else []
    if subprocess.run([*command, *newer], capture_output=True, check=False).returncode:
        raise CannotExpress("its ONNX importer refuses it")
    return text.read_bytes()


def engine(cores: int, variant: str) -> Engine:
    """IREE on `cores` threads; the variant `tiled` enables data tiling of the operands of products."""
    if cores > 1:
        runtime.flags.parse_flags(f"--task_topology_group_count={cores}")
    config = runtime.Config("local-sync" if cores == 1 else "local-task")
    tiling = f"--iree-opt-data-tiling={'true' if variant == 'tiled' else 'false'}"

    def write(task: Task) -> Compile:
        text = stablehlo(task) if task.model is None else imported(task.model)
        kind = "stablehlo" if task.model is None else "onnx"

        def compile_row(constants: Any) -> Any:
            context = runtime.SystemContext(config=config)
            module = runtime.VmModule.copy_buffer(
                context.instance, compiled(text, (f"--iree-input-type={kind}", tiling))
            )
            context.add_vm_module(module)
            functions = getattr(context.modules, module.name)
            (name,) = (name for name in module.function_names if not name.startswith("__") and "$" not in name)
            return functions[name]

        return compile_row

    def outputs(result: Any) -> list[Any]:
        return [each.to_host() for each in (result if isinstance(result, tuple) else (result,))]

    place = lambda array: runtime.asdevicearray(config.device, array)  # noqa: E731
    return Engine(metadata.version("iree-base-compiler"), write, place=place, outputs=outputs)
