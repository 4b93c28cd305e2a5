"""Kernels that MLIR's own lowering of the gpu dialect spells."""

from __future__ import annotations

import numpy as np
import pytest

from dialect.mlir import PassManager, ir, llvm
from passes.codegen.llvm_skew import downgrade

from . import DeviceMemory, OutOfBounds, SimtModule, Watch

_LOWERING = (
    "builtin.module(gpu.module(lower-affine,expand-strided-metadata,lower-affine,convert-scf-to-cf,canonicalize,cse,"
    "convert-gpu-to-nvvm{index-bitwidth=64 use-bare-ptr-memref-call-conv=1},reconcile-unrealized-casts,"
    "canonicalize,cse))"
)
_ALL_REDUCE = """
gpu.module @m {
  gpu.func @k(%x: memref<f32>, %y: memref<f32>, %n: index) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %tid = gpu.thread_id x
    %block = gpu.block_id x
    %zero = arith.constant 0.0 : f32
    %inside = arith.cmpi ult, %tid, %n : index
    %row = arith.muli %block, %n : index
    %at = arith.addi %row, %tid : index
    %blocks = gpu.grid_dim x
    %all = arith.muli %blocks, %n : index
    %xs = memref.reinterpret_cast %x to offset: [0], sizes: [%all], strides: [1] : memref<f32> to memref<?xf32>
    %ys = memref.reinterpret_cast %y to offset: [0], sizes: [%blocks], strides: [1] : memref<f32> to memref<?xf32>
    %own = scf.if %inside -> f32 {
      %loaded = memref.load %xs[%at] : memref<?xf32>
      scf.yield %loaded : f32
    } else {
      scf.yield %zero : f32
    }
    %sum = gpu.all_reduce add %own uniform {} : (f32) -> f32
    %first = arith.constant 0 : index
    %writes = arith.cmpi eq, %tid, %first : index
    scf.if %writes {
      memref.store %sum, %ys[%block] : memref<?xf32>
    }
    gpu.return
  }
}
"""
_SHARED = """
gpu.module @m {
  gpu.func @k(%x: memref<i32>, %y: memref<i32>)
      workgroup(%fixed: memref<64xi32, #gpu.address_space<workgroup>>) kernel {
    %tid = gpu.thread_id x
    %size = gpu.block_dim x
    %one = arith.constant 1 : i32
    %width = arith.constant 32 : i32
    %zero = arith.constant 0 : index
    %step = arith.constant 1 : index
    %room = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %bag = memref.view %room[%zero][%size]
      : memref<?xi8, #gpu.address_space<workgroup>> to memref<?xi32, #gpu.address_space<workgroup>>
    %xs = memref.reinterpret_cast %x to offset: [0], sizes: [%size], strides: [1] : memref<i32> to memref<?xi32>
    %ys = memref.reinterpret_cast %y to offset: [0], sizes: [%size], strides: [1] : memref<i32> to memref<?xi32>
    %a = memref.load %xs[%tid] : memref<?xi32>
    %swapped, %in = gpu.shuffle xor %a, %one, %width : i32
    memref.store %swapped, %fixed[%tid] : memref<64xi32, #gpu.address_space<workgroup>>
    gpu.barrier
    %last = arith.subi %size, %step : index
    %mirror = arith.subi %last, %tid : index
    %b = memref.load %fixed[%mirror] : memref<64xi32, #gpu.address_space<workgroup>>
    memref.store %b, %bag[%tid] : memref<?xi32, #gpu.address_space<workgroup>>
    gpu.barrier
    %c = memref.load %bag[%mirror] : memref<?xi32, #gpu.address_space<workgroup>>
    %d, %up.in = gpu.shuffle up %c, %one, %width : i32
    %e, %down.in = gpu.shuffle down %d, %one, %width : i32
    memref.store %e, %ys[%tid] : memref<?xi32>
    gpu.return
  }
}
"""


def _lowered(source: str) -> str:
    """LLVM IR of the functions of the source's only gpu.module."""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(source)
        PassManager.parse(_LOWERING).run(module.operation)
        (device,) = module.body.operations
        host = ir.Module.create()
        for operation in list(device.regions[0].blocks[0].operations):
            host.body.append(operation)
        return downgrade(str(llvm.translate_module_to_llvmir(host.operation)))


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("count", [1, 33, 128])
def test_a_reduction_over_a_block(count: int, watched: bool) -> None:
    module, memory = SimtModule(_lowered(_ALL_REDUCE)), DeviceMemory()
    x = np.random.default_rng(0).integers(-50, 50, (4, count)).astype(np.float32)
    source, result = memory.upload(x), memory.fresh((4,), np.float32)
    for seed in range(3):
        watch = Watch(memory, [source]) if watched else None
        module.launch("k", (4,), (128,), [source, result, count], seed=seed, watch=watch)
        np.testing.assert_array_equal(result.numpy(), x.sum(axis=1))
        if watch:
            watch.stored_once(result)


@pytest.mark.parametrize("watched", [False, True])
def test_shuffles_barriers_and_both_kinds_of_shared_memory(watched: bool) -> None:
    module, memory = SimtModule(_lowered(_SHARED)), DeviceMemory()
    x = np.arange(64, dtype=np.int32)
    source, result = memory.upload(x), memory.fresh((64,), np.int32)
    watch = Watch(memory, [source]) if watched else None
    module.launch("k", (1,), (64,), [source, result], dynamic_shared_bytes=256, watch=watch)
    # Mirrored twice, lanes are back in place; down after up undoes it except for the last lane, which keeps its own.
    expected = (x ^ 1).reshape(2, 32)
    expected[:, 31] = expected[:, 30]
    np.testing.assert_array_equal(result.numpy(), expected.ravel())


def test_a_missing_barrier_and_too_little_room_are_found_here_too() -> None:
    text = _lowered(_SHARED)
    broken = text.replace("  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n", "", 1)
    assert broken != text
    memory = DeviceMemory()
    x = np.arange(64, dtype=np.int32)
    source, result = memory.upload(x), memory.fresh((64,), np.int32)
    right = memory.fresh((64,), np.int32)
    SimtModule(text).launch("k", (1,), (64,), [source, right], dynamic_shared_bytes=256)
    SimtModule(broken).launch("k", (1,), (64,), [source, result], dynamic_shared_bytes=256)
    assert (result.numpy() != right.numpy()).any()
    with pytest.raises(OutOfBounds):
        SimtModule(text).launch("k", (1,), (64,), [source, result], dynamic_shared_bytes=128)
