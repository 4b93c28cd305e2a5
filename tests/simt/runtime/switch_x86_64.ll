; void simt_switch(void **save, void *to): leaves the running stack, its pointer stored at `save`, for the one at `to`.
; The System V calling convention keeps rbx, rbp and r12 to r15; nothing here changes the floating-point modes.
module asm ".text"
module asm ".globl simt_switch"
module asm ".type simt_switch, @function"
module asm "simt_switch:"
module asm "  pushq %rbp"
module asm "  pushq %rbx"
module asm "  pushq %r12"
module asm "  pushq %r13"
module asm "  pushq %r14"
module asm "  pushq %r15"
module asm "  movq %rsp, (%rdi)"
module asm "  movq %rsi, %rsp"
module asm "  popq %r15"
module asm "  popq %r14"
module asm "  popq %r13"
module asm "  popq %r12"
module asm "  popq %rbx"
module asm "  popq %rbp"
module asm "  ret"
module asm ".size simt_switch, .-simt_switch"

declare void @simt_switch(ptr, ptr)

; A stack on which a switch enters `function`: six saved registers, its address to return to, and no caller.
define internal ptr @fresh_stack(i32 %index, ptr %function) {
  %launch = load ptr, ptr @launched
  %stacks.at = getelementptr %launch, ptr %launch, i64 0, i32 2
  %stacks = load ptr, ptr %stacks.at
  %bytes.at = getelementptr %launch, ptr %launch, i64 0, i32 3
  %bytes = load i64, ptr %bytes.at
  %wide = zext i32 %index to i64
  %after = add i64 %wide, 1
  %end = mul i64 %after, %bytes
  ; Stacks a power of two apart would have their tops compete for the same sets of the cache.
  %colour = and i64 %wide, 63
  %shift = mul i64 %colour, 192
  %below = add i64 %shift, 64
  %offset = sub i64 %end, %below
  %top = getelementptr i8, ptr %stacks, i64 %offset
  %pointer = getelementptr i8, ptr %top, i64 -48
  call void @llvm.memset.p0.i64(ptr align 16 %pointer, i8 0, i64 64, i1 false)
  store ptr %function, ptr %top
  ret ptr %pointer
}
