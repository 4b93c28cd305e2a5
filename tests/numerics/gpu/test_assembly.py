"""Every kind and dtype through NVIDIA's assembler, for three architectures by turns: accepted, nothing spilled."""

from __future__ import annotations

from passes.compile import CompileRequest, compile_request
from tensorkiln.dtypes import DType
from tensorkiln.options import CompileOptions
from tests.codegen.assemblers import needs_assembler
from tests.compiled import target
from tests.numerics.cases import Case, graph_for
from tests.numerics.cases.drawn import for_each_of, parametrize
from tests.numerics.cases.kinds import KINDS_AND_DTYPES
from tests.numerics.cases.turns import of_kind

ARCHITECTURES = ("sm_80", "sm_90", "sm_120")
TURNS = (*ARCHITECTURES, *("" for _ in ARCHITECTURES))
"""As many dtypes of a kind are left to its others."""
ASSEMBLED = [(*each, arch) for each in KINDS_AND_DTYPES for arch in of_kind(TURNS, len(TURNS), *each) if arch]


def test_every_kind_and_dtype_is_assembled_for_every_architecture() -> None:
    for place in (0, 1):
        assert {(each[place], each[2]) for each in ASSEMBLED} == {
            (each[place], arch) for each in KINDS_AND_DTYPES for arch in ARCHITECTURES
        }


@needs_assembler
@parametrize(("kind", "dtype", "arch"), ASSEMBLED, drawn=2)
def test_a_kernel_is_assembled_without_spills(kind: str, dtype: DType, arch: str) -> None:
    def assembles(case: Case) -> None:
        request = CompileRequest(case.graph, target(f"cuda:{arch}"), CompileOptions(cubin=True))
        compilation = compile_request(request)
        for kernel in compilation.program.kernels:
            assert compilation.artifacts[str(kernel.binary)][:4] == b"\x7fELF"
            assert kernel.resources is not None
            assert (kernel.resources.spill_bytes, kernel.resources.shared_memory_bytes) == (
                0,
                kernel.static_shared_bytes,
            )
            assert 0 < (kernel.resources.registers or 0) <= 255

    for_each_of(1, graph_for(kind, dtype, symbolic=True), assembles)
