"""Real kernels for the tests: LLVM IR with the kernel ABI, compiled to objects for this machine."""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import llvmlite.binding as _llvm

CHUNK = 16
"""Elements of one work-group of the elementwise kernels."""

llvm = cast(Any, _llvm)


@cache
def compile_object(ir: str) -> bytes:
    """The object of an LLVM module for this machine."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(ir)
    module.verify()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(opt=2, reloc="pic", codemodel="default").emit_object(module)


def elementwise(name: str, arity: int, body: str, element: str = "float", chunk: int = CHUNK) -> str:
    """`out[i] = body(x0[i], …)` for `i` below the first value; `body` computes `%y` from `%x0`, `%x1`, …

    The buffers are the inputs, then the output.
    """
    pointers = "".join(_pointer(slot) for slot in range(arity + 1))
    loads = "".join(
        f"  %a{slot} = getelementptr {element}, ptr %p{slot}, i64 %i\n  %x{slot} = load {element}, ptr %a{slot}\n"
        for slot in range(arity)
    )
    return f"""
define void @{name}(ptr %buffers, ptr %vals, i64 %first, i64 %last) {{
entry:
  %n = load i64, ptr %vals
{pointers}  %begin = mul i64 %first, {chunk}
  %stop = mul i64 %last, {chunk}
  %short = icmp slt i64 %stop, %n
  %end = select i1 %short, i64 %stop, i64 %n
  br label %head
head:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %loop, label %exit
loop:
{loads}{body}
  %to = getelementptr {element}, ptr %p{arity}, i64 %i
  store {element} %y, ptr %to
  %next = add i64 %i, 1
  br label %head
exit:
  ret void
}}
"""


def _pointer(slot: int) -> str:
    return f"  %s{slot} = getelementptr ptr, ptr %buffers, i64 {slot}\n  %p{slot} = load ptr, ptr %s{slot}\n"


def triangle_with_scratch(count: int) -> str:
    """`out[g] = sum of g * count + j for j in 0..count-1`, through a scratch array of `count` 64-bit integers.

    The scratch is filled completely before any of it is read, so two workers sharing one would spoil each other's sums.
    The buffers are the output and the scratch; there are no values.
    """
    return f"""
define void @triangle(ptr %buffers, ptr %vals, i64 %first, i64 %last) {{
entry:
{_pointer(0)}{_pointer(1)}  br label %groups
groups:
  %g = phi i64 [ %first, %entry ], [ %nextgroup, %done ]
  %moregroups = icmp slt i64 %g, %last
  br i1 %moregroups, label %fill, label %exit
fill:
  %j = phi i64 [ 0, %groups ], [ %nextj, %fill ]
  %base = mul i64 %g, {count}
  %value = add i64 %base, %j
  %to = getelementptr i64, ptr %p1, i64 %j
  store volatile i64 %value, ptr %to
  %nextj = add i64 %j, 1
  %filled = icmp eq i64 %nextj, {count}
  br i1 %filled, label %sum, label %fill
sum:
  %k = phi i64 [ 0, %fill ], [ %nextk, %sum ]
  %total = phi i64 [ 0, %fill ], [ %nexttotal, %sum ]
  %from = getelementptr i64, ptr %p1, i64 %k
  %loaded = load volatile i64, ptr %from
  %nexttotal = add i64 %total, %loaded
  %nextk = add i64 %k, 1
  %summed = icmp eq i64 %nextk, {count}
  br i1 %summed, label %done, label %sum
done:
  %out = getelementptr i64, ptr %p0, i64 %g
  store i64 %nexttotal, ptr %out
  %nextgroup = add i64 %g, 1
  br label %groups
exit:
  ret void
}}
"""


ADD = elementwise("add", 2, "  %y = fadd float %x0, %x1")
DOUBLE = elementwise("double_it", 1, "  %y = fadd float %x0, %x0")
INCREMENT = elementwise("increment", 1, "  %y = fadd float %x0, 1.0")
EXP = "declare float @expf(float)\n" + elementwise("exponential", 1, "  %y = call float @expf(float %x0)")
COPY = f"""declare ptr @memcpy(ptr, ptr, i64)
define void @copy_it(ptr %buffers, ptr %vals, i64 %first, i64 %last) {{
  %n = load i64, ptr %vals
  %bytes = mul i64 %n, 4
{_pointer(0)}{_pointer(1)}  %r = call ptr @memcpy(ptr %p1, ptr %p0, i64 %bytes)
  ret void
}}
"""
