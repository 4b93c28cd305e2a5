"""Scalar code in a loop over arrays, compiled for a target and called through ctypes."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numpy.typing import NDArray

from dialect.mlir import PassManager, arith, func, ir, memref, scf
from passes import scalar
from passes.codegen.object_code import assembly, emit
from passes.codegen.translate import to_llvm_ir
from passes.scalar import Traits, mlir_scalar, traits_of
from tensorkiln.dtypes import DType
from tensorkiln.target import LEVELS, Target, missing_features

Array = NDArray[Any]
Body = Callable[[Traits, Sequence[ir.Value]], ir.Value]

_LOWERING = (
    "builtin.module(canonicalize,cse,expand-strided-metadata,lower-affine,convert-scf-to-cf,convert-math-to-llvm,"
    "convert-arith-to-llvm,convert-index-to-llvm,finalize-memref-to-llvm,"
    "convert-func-to-llvm{use-bare-ptr-memref-call-conv=true},convert-cf-to-llvm,reconcile-unrealized-casts,"
    "canonicalize,cse)"
)


@dataclass(frozen=True)
class Loop:
    """A body that is applied to each element of arrays."""

    body: Body
    inputs: Sequence[DType]
    output: DType


def llvm_ir(body: Body, inputs: Sequence[DType], output: DType, target: str | Target) -> str:
    """LLVM IR of `void k(output, inputs..., n)`, which applies the body to each of n elements."""
    return llvm_ir_of({"k": Loop(body, inputs, output)}, traits_of(Target.parse(target)))


def llvm_ir_of(loops: Mapping[str, Loop], traits: Traits) -> str:
    """LLVM IR of a module with a function as that of `llvm_ir` for each of the loops, called as they are."""
    with _context(), ir.Location.unknown():
        module = ir.Module.create()
        for name, loop in loops.items():
            with ir.InsertionPoint(module.body):
                _define(name, loop, traits)
        PassManager.parse(_LOWERING).run(module.operation)
        return to_llvm_ir(module)


@cache
def _context() -> ir.Context:
    """One for all: to make one takes longer than to lower a loop."""
    return ir.Context()


def _define(name: str, loop: Loop, traits: Traits) -> None:
    index = ir.IndexType.get()
    scalars = [ir.MemRefType.get([], _stored(dtype)) for dtype in (loop.output, *loop.inputs)]
    function = func.FuncOp(name, ([*scalars, index], []))
    block = function.add_entry_block()
    function.arg_attrs = [ir.DictAttr.get({"llvm.noalias": ir.UnitAttr.get()})] * len(scalars) + [ir.DictAttr.get({})]
    with ir.InsertionPoint(block):
        *pointers, count = block.arguments
        arrays = [_as_vector(pointer, count) for pointer in pointers]
        zero, one = (arith.ConstantOp(index, ir.IntegerAttr.get(index, n)).result for n in (0, 1))
        each = scf.ForOp(zero, count, one)
        with ir.InsertionPoint(each.body):
            at = each.induction_variable
            values = [
                _loaded(dtype, memref.load(array, [at])) for dtype, array in zip(loop.inputs, arrays[1:], strict=True)
            ]
            memref.store(_storable(loop.output, loop.body(traits, values)), arrays[0], [at])
            scf.YieldOp([])
        func.ReturnOp([])


def _stored(dtype: DType) -> ir.Type:
    return ir.IntegerType.get_signless(8) if dtype.is_bool else mlir_scalar(dtype)


def _as_vector(pointer: ir.Value, count: ir.Value) -> ir.Value:
    element = ir.MemRefType(pointer.type).element_type
    dynamic = ir.ShapedType.get_dynamic_size()
    return memref.ReinterpretCastOp(
        ir.MemRefType.get([dynamic], element), pointer, [], [count], [], [0], [dynamic], [1]
    ).result


def _loaded(dtype: DType, value: ir.Value) -> ir.Value:
    if not dtype.is_bool:
        return value
    zero = arith.ConstantOp(value.type, ir.IntegerAttr.get(value.type, 0)).result
    return arith.cmpi(arith.CmpIPredicate.ne, value, zero)


def _storable(dtype: DType, value: ir.Value) -> ir.Value:
    return arith.extui(ir.IntegerType.get_signless(8), value) if dtype.is_bool else value


@dataclass(frozen=True)
class Kernel:
    """A compiled body: arrays of equal size in, an array of the output dtype out."""

    engine: llvm.ExecutionEngine
    name: str
    output: DType
    inputs: int

    def __call__(self, *arrays: Array) -> Array:
        arrays = tuple(np.ascontiguousarray(array) for array in arrays)
        result = np.empty(arrays[0].shape, self.output.numpy)
        self.into(result, *arrays)
        return result

    def into(self, result: Array, *arrays: Array) -> None:
        signature = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (1 + self.inputs), ctypes.c_int64)
        address = self.engine.get_function_address(self.name)
        signature(address)(result.ctypes.data, *(array.ctypes.data for array in arrays), result.size)


def kernel(body: Body, inputs: Sequence[DType], output: DType, target: str = "cpu:native") -> Kernel:
    """Compile a body as a loop and load it."""
    return kernels({"k": Loop(body, inputs, output)}, target)["k"]


def kernels(loops: Mapping[str, Loop], target: str = "cpu:native") -> dict[str, Kernel]:
    """Compile loops as one object and load it."""
    resolved = Target.parse(target)
    code = emit(llvm_ir_of(loops, traits_of(resolved)), resolved)
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return {name: Kernel(engine, name, loop.output, len(loop.inputs)) for name, loop in loops.items()}


def assembler(body: Body, inputs: Sequence[DType], output: DType, target: str | Target) -> str:
    """The body's loop as assembler text."""
    return assembler_of({"k": Loop(body, inputs, output)}, target)["k"]


def assembler_of(loops: Mapping[str, Loop], target: str | Target) -> dict[str, str]:
    """Each loop as assembler text."""
    resolved = Target.parse(target)
    text = assembly(llvm_ir_of(loops, traits_of(resolved)), resolved)
    found = dict(re.findall(r"^(\w+):(.*?)^\.Lfunc_end", text, re.MULTILINE | re.DOTALL))
    assert found.keys() == loops.keys()
    return found


def runnable_targets() -> list[str]:
    """This machine, and the lower levels of its architecture, whose code takes other paths."""
    host = llvm.get_host_cpu_features()
    is_x86 = Target.parse("cpu:native").triple == LEVELS["x86-64-v2"][0]
    levels = ("cpu:x86-64-v2", "cpu:x86-64-v3") if is_x86 else ()
    return ["cpu:native", *(level for level in levels if not missing_features(Target.parse(level), host))]


EVERY_TARGET = runnable_targets()
TARGETS = EVERY_TARGET[:2]
"""The most and the least capable: with and without fused multiply-add and float16 conversions."""


def binary(
    kind: str, dtype: DType, target: str = "cpu:native", *, result: DType | None = None, amount: DType | None = None
) -> Kernel:
    """The kernel of a binop."""
    return kernels({"k": binop(kind, dtype, result=result, amount=amount)}, target)["k"]


def binop(kind: str, dtype: DType, *, result: DType | None = None, amount: DType | None = None) -> Loop:
    """The loop of a binop."""
    return Loop(
        lambda traits, values: scalar.binop(
            kind, dtype, values[0], values[1], result, amount_dtype=amount, traits=traits
        ),
        (dtype, amount or dtype),
        result or dtype,
    )


def unary(kind: str, dtype: DType, target: str = "cpu:native") -> Kernel:
    """The kernel of a unary."""
    return kernel(lambda traits, values: scalar.unary(kind, dtype, values[0], traits=traits), (dtype,), dtype, target)


def cast(source: DType, destination: DType, target: str = "cpu:native") -> Kernel:
    """The kernel of a cast."""
    return kernels({"k": conversion(source, destination)}, target)["k"]


def conversion(source: DType, destination: DType) -> Loop:
    """The loop of a cast."""
    return Loop(
        lambda traits, values: scalar.cast(source, destination, values[0], traits=traits), (source,), destination
    )
