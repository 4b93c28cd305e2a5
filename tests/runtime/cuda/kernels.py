"""GPU kernels for the tests: LLVM IR with the kernel ABI, and the PTX that LLVM makes of it."""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import llvmlite.binding as _llvm

llvm = cast(Any, _llvm)

TRIPLE = "nvptx64-nvidia-cuda"
THREADS = 32
"""Threads of a block of the elementwise kernels."""

INDEX = """declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
"""


@cache
def compile_ptx(ir: str, arch: str = "sm_90") -> bytes:
    """The PTX of an LLVM module."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = llvm.parse_assembly(f'target triple = "{TRIPLE}"\n{ir}')
    module.verify()
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(cpu=arch)
    return cast(str, machine.emit_assembly(module)).encode()


def elementwise(name: str, arity: int, body: str, element: str = "float") -> str:
    """`out[i] = body(x0[i], …)` for `i` below the first value, one thread each; `body` makes `%y` of `%x0`, `%x1`, …

    The buffers are the inputs, then the output.
    """
    parameters = ", ".join(f"ptr %p{slot}" for slot in range(arity + 1))
    loads = "".join(
        f"  %a{slot} = getelementptr {element}, ptr %p{slot}, i64 %i\n  %x{slot} = load {element}, ptr %a{slot}\n"
        for slot in range(arity)
    )
    return f"""{INDEX}
define ptx_kernel void @{name}({parameters}, i64 %n) {{
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %width = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %tid64 = zext i32 %tid to i64
  %block64 = zext i32 %block to i64
  %width64 = zext i32 %width to i64
  %first = mul i64 %block64, %width64
  %i = add i64 %first, %tid64
  %inside = icmp slt i64 %i, %n
  br i1 %inside, label %do, label %exit
do:
{loads}{body}
  %to = getelementptr {element}, ptr %p{arity}, i64 %i
  store {element} %y, ptr %to
  br label %exit
exit:
  ret void
}}
"""


def reversed_blocks(name: str, shared: str) -> str:
    """`out[b * w + t] = x[b * w + (w - 1 - t)]` through the shared memory `@tile`, for blocks of `w` threads.

    `shared` is the type of the tile, `[0 x float]` for dynamic shared memory.
    """
    linkage = "external" if shared.startswith("[0 ") else "internal"
    value = "" if shared.startswith("[0 ") else " undef"
    return f"""{INDEX}
@tile = {linkage} addrspace(3) global {shared}{value}, align 16
define ptx_kernel void @{name}(ptr %x, ptr %out) {{
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %width = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %first = mul i32 %block, %width
  %i = add i32 %first, %tid
  %from = getelementptr float, ptr %x, i32 %i
  %value = load float, ptr %from
  %last = sub i32 %width, 1
  %mirror = sub i32 %last, %tid
  %slot = getelementptr float, ptr addrspace(3) @tile, i32 %tid
  store float %value, ptr addrspace(3) %slot
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %other = getelementptr float, ptr addrspace(3) @tile, i32 %mirror
  %mirrored = load float, ptr addrspace(3) %other
  %to = getelementptr float, ptr %out, i32 %i
  store float %mirrored, ptr %to
  ret void
}}
"""


ADD = elementwise("add", 2, "  %y = fadd float %x0, %x1")
DOUBLE = elementwise("double_it", 1, "  %y = fadd float %x0, %x0")
INCREMENT = elementwise("increment", 1, "  %y = fadd float %x0, 1.0")
