; What the parts of the runtime share. Python reads and writes these globals by name; see native.py for the layouts.

; One thread of the block that runs, while it is suspended:
;   0 stack pointer     1 status: 0 ready, 1 at a barrier, 2 in a warp collective, 3 exited
;   2 site of the call  3 operation
;   4 barrier: its number; collective: the member mask
;   5 barrier: how many threads it waits for, 0 for all; shuffle: the lane operand
;   6 shuffle: the clamp operand
;   7 value going in    8 value coming out, and in bit 32 a shuffle's predicate
;   9, 10 the numbers of the last collective and of the last barrier of its warp that it took part in
%thread = type { ptr, i32, i32, i32, i32, i32, i32, i32, i64, i32, i32, i64 }

; What is launched:
;   0 kernel, called with the arguments' address   1 arguments, 8 bytes each
;   2 stacks, the driver's first    3 bytes of one stack
;   4 blocks   5, 6 block k runs at place (start + k * step) mod blocks, so that the order is not the natural one
;   7 shared arrays   8 how many
;   9 threads of a block   10 whether the kernel can suspend   11 block dimensions   12 grid dimensions
%launch = type { ptr, ptr, ptr, i64, i64, i64, i64, ptr, i64, i32, i32, [3 x i32], [3 x i32] }

; A shared array: address, bytes.
%shared = type { ptr, i64 }

; Why a launch stopped: 0 code, 1 site, 2 thread, 3 another thread, 4 linear block, 5 address, 6 bytes.
%report = type { i32, i32, i32, i32, i64, i64, i64 }

@threads = global [1024 x %thread] zeroinitializer, align 64
@report = global %report zeroinitializer, align 8
@random = global i64 1
; Barrier intervals of the block so far.
@interval = global i32 0
; Collectives that each warp of the block has completed.
@collectives = global [32 x i32] zeroinitializer
@block = global i64 0
; tid, ctaid, ntid, nctaid, each x y z, then the thread's linear number.
@registers = global [13 x i32] zeroinitializer, align 16
@positions = global [1024 x [3 x i32]] zeroinitializer, align 16
@order = global [1024 x i32] zeroinitializer, align 16
@launched = global ptr null
@main_stack = global ptr null
@driver_stack = global ptr null

define internal ptr @thread_at(i32 %index) alwaysinline {
  %wide = zext i32 %index to i64
  %thread = getelementptr [1024 x %thread], ptr @threads, i64 0, i64 %wide
  ret ptr %thread
}

define internal i32 @current() alwaysinline {
  %thread = load i32, ptr getelementptr ([13 x i32], ptr @registers, i64 0, i64 12)
  ret i32 %thread
}

define internal i32 @block_threads() alwaysinline {
  %launch = load ptr, ptr @launched
  %at = getelementptr %launch, ptr %launch, i64 0, i32 9
  %count = load i32, ptr %at
  ret i32 %count
}

; No thread of the block has taken part in anything yet.
define internal void @forget_collectives(i32 %count) {
entry:
  call void @llvm.memset.p0.i64(ptr @collectives, i8 0, i64 128, i1 false)
  br label %each
each:
  %index = phi i32 [ 0, %entry ], [ %next, %each ]
  %thread = call ptr @thread_at(i32 %index)
  %lasts.at = getelementptr %thread, ptr %thread, i64 0, i32 9
  store i64 0, ptr %lasts.at, align 4
  %next = add i32 %index, 1
  %more = icmp ult i32 %next, %count
  br i1 %more, label %each, label %done
done:
  ret void
}

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
