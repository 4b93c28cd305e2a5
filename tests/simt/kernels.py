"""Kernels for the emulator's own tests, in LLVM IR with the GPU's kernel ABI."""

from __future__ import annotations

from collections.abc import Sequence

BARRIER = "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n"

TID = "  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"

GLOBAL_INDEX = (
    f"{TID}  %ctaid = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()\n"
    "  %ntid = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()\n"
    "  %first = mul i32 %ctaid, %ntid\n  %linear = add i32 %first, %tid\n  %i = zext i32 %linear to i64\n"
)
"""Defines `%tid`, and `%i` as the number of the thread through all blocks of a launch along x."""


def kernel(parameters: str, body: str, *, name: str = "k", globals_: Sequence[str] = ()) -> str:
    """A module with one kernel, whose body ends without its `ret`."""
    return "\n".join((*globals_, f"define ptx_kernel void @{name}({parameters}) {{\n{body}  ret void\n}}\n"))


def element(result: str, pointer: str, index: str, kind: str = "float") -> str:
    """`result` becomes the address of an element."""
    return f"  {result} = getelementptr {kind}, {pointer}, {index}\n"


def add(bound: str = "%n", alignment: int = 4) -> str:
    """`c[i] = a[i] + b[i]` for `i` below `bound`."""
    return kernel(
        "ptr %a, ptr %b, ptr %c, i64 %n",
        f"{GLOBAL_INDEX}  %more = add i64 %n, 1\n  %inside = icmp slt i64 %i, {bound}\n"
        f"  br i1 %inside, label %go, label %done\ngo:\n"
        f"{element('%pa', 'ptr %a', 'i64 %i')}  %va = load float, ptr %pa, align {alignment}\n"
        f"{element('%pb', 'ptr %b', 'i64 %i')}  %vb = load float, ptr %pb\n  %v = fadd float %va, %vb\n"
        f"{element('%pc', 'ptr %c', 'i64 %i')}  store float %v, ptr %pc\n  br label %done\ndone:\n",
    )


def block_sum(
    *, first_barrier: str = BARRIER, distances: Sequence[int] = (16, 8, 4, 2, 1), mode: str = "down", mask: str = "-1"
) -> str:
    """`y[block]` is the sum of the block's elements of `x`: a shuffle in each warp, then one thread over the warps."""
    shuffles, last = "", "%own"
    for step, distance in enumerate(distances):
        operands = f"i32 {mask}, float {last}, i32 {distance}, i32 31"
        shuffles += f"  %o{step} = call float @llvm.nvvm.shfl.sync.{mode}.f32({operands})\n"
        shuffles += f"  %s{step} = fadd float {last}, %o{step}\n"
        last = f"%s{step}"
    return kernel(
        "ptr %x, ptr %y",
        f"{GLOBAL_INDEX}{element('%px', 'ptr %x', 'i64 %i')}  %own = load float, ptr %px\n{shuffles}"
        "  %lane = and i32 %tid, 31\n  %leads = icmp eq i32 %lane, 0\n  br i1 %leads, label %put, label %meet\n"
        f"put:\n  %warp = lshr i32 %tid, 5\n{element('%pw', 'ptr addrspace(3) @sums', 'i32 %warp')}"
        f"  store float {last}, ptr addrspace(3) %pw\n  br label %meet\nmeet:\n{first_barrier}"
        "  %is.first = icmp eq i32 %tid, 0\n  br i1 %is.first, label %total, label %done\ntotal:\n"
        "  %warps = lshr i32 %ntid, 5\n  br label %each\n"
        "each:\n  %w = phi i32 [ 0, %total ], [ %w.next, %each ]\n"
        "  %acc = phi float [ 0.0, %total ], [ %acc.next, %each ]\n"
        f"{element('%ps', 'ptr addrspace(3) @sums', 'i32 %w')}  %part = load float, ptr addrspace(3) %ps\n"
        "  %acc.next = fadd float %acc, %part\n  %w.next = add i32 %w, 1\n"
        "  %again = icmp ult i32 %w.next, %warps\n  br i1 %again, label %each, label %write\nwrite:\n"
        f"{element('%py', 'ptr %y', 'i32 %ctaid')}  store float %acc.next, ptr %py\n  br label %done\ndone:\n",
        globals_=["@sums = internal addrspace(3) global [32 x float] undef"],
    )


def transpose(*, barrier: str = BARRIER, pitch: int = 33, rows: int = 32) -> str:
    """A 32 x 32 tile through shared memory with a padded row; one row of threads per row of the tile."""
    return kernel(
        "ptr %x, ptr %y",
        f"{TID}  %row = call i32 @llvm.nvvm.read.ptx.sreg.tid.y()\n  %from = shl i32 %row, 5\n"
        f"  %source = or i32 %from, %tid\n{element('%px', 'ptr %x', 'i32 %source')}  %v = load float, ptr %px\n"
        f"  %in.row = mul i32 %row, {pitch}\n  %in = add i32 %in.row, %tid\n"
        f"{element('%pin', 'ptr addrspace(3) @tile', 'i32 %in')}  store float %v, ptr addrspace(3) %pin\n{barrier}"
        f"  %out.row = mul i32 %tid, {pitch}\n  %out = add i32 %out.row, %row\n"
        f"{element('%pout', 'ptr addrspace(3) @tile', 'i32 %out')}  %w = load float, ptr addrspace(3) %pout\n"
        f"{element('%py', 'ptr %y', 'i32 %source')}  store float %w, ptr %py\n",
        globals_=[f"@tile = internal addrspace(3) global [{rows * 33} x float] undef, align 16"],
    )


def reverse() -> str:
    """Reverses each block's elements through dynamic shared memory."""
    return kernel(
        "ptr %x, ptr %y",
        f"{GLOBAL_INDEX}{element('%px', 'ptr %x', 'i64 %i')}  %v = load float, ptr %px\n"
        f"{element('%pin', 'ptr addrspace(3) @room', 'i32 %tid')}  store float %v, ptr addrspace(3) %pin\n{BARRIER}"
        "  %last = sub i32 %ntid, 1\n  %mirror = sub i32 %last, %tid\n"
        f"{element('%pout', 'ptr addrspace(3) @room', 'i32 %mirror')}  %w = load float, ptr addrspace(3) %pout\n"
        f"{element('%py', 'ptr %y', 'i64 %i')}  store float %w, ptr %py\n",
        globals_=["@room = external addrspace(3) global [0 x i8], align 16"],
    )


def histogram() -> str:
    """Counts the values of `x`, below 16, with atomics: first per block in shared memory, then in `y`."""
    return kernel(
        "ptr %x, ptr %y",
        f"{GLOBAL_INDEX}  %clears = icmp ult i32 %tid, 16\n  br i1 %clears, label %clear, label %ready\nclear:\n"
        f"{element('%pz', 'ptr addrspace(3) @bins', 'i32 %tid', 'i32')}  store i32 0, ptr addrspace(3) %pz\n"
        f"  br label %ready\nready:\n{BARRIER}{element('%px', 'ptr %x', 'i64 %i', 'i32')}  %v = load i32, ptr %px\n"
        f"{element('%pb', 'ptr addrspace(3) @bins', 'i32 %v', 'i32')}"
        f'  %old = atomicrmw add ptr addrspace(3) %pb, i32 1 syncscope("block") monotonic\n{BARRIER}'
        f"  br i1 %clears, label %flush, label %done\nflush:\n"
        f"{element('%pc', 'ptr addrspace(3) @bins', 'i32 %tid', 'i32')}  %count = load i32, ptr addrspace(3) %pc\n"
        f"{element('%py', 'ptr %y', 'i32 %tid', 'i32')}  %was = atomicrmw add ptr %py, i32 %count monotonic\n"
        "  br label %done\ndone:\n",
        globals_=["@bins = internal addrspace(3) global [16 x i32] undef"],
    )
