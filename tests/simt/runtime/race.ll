; What one byte's cell says about an access: two threads race when nothing orders what they do.
;   A barrier of the block orders everything before it and everything after it.
;   A warp's barrier does so for the threads that take part. Its other collectives order a read before a write only: they
;   wait for the reader, whose value is in its register by then, but they make no store visible.
;   Nothing orders the blocks of a launch, so in global memory their threads always race.

; The current thread's number through all blocks, and the first one of its block.
define internal { i32, i32 } @numbers() alwaysinline {
  %thread = call i32 @current()
  %count = call i32 @block_threads()
  %block = load i64, ptr @block
  %narrow = trunc i64 %block to i32
  %before = mul i32 %narrow, %count
  %first = add i32 %before, 1
  %mine = add i32 %first, %thread
  %one = insertvalue { i32, i32 } poison, i32 %mine, 0
  %both = insertvalue { i32, i32 } %one, i32 %first, 1
  ret { i32, i32 } %both
}

; Whether what thread `other` did in interval `then` may be seen too early or too late by the current thread.
define internal i1 @unordered(i32 %other, i32 %then, i32 %first, i32 %flags) alwaysinline {
  %count = call i32 @block_threads()
  %now = load i32, ptr @interval
  %distance = sub i32 %other, %first
  %same.block = icmp ult i32 %distance, %count
  %same.interval = icmp eq i32 %then, %now
  %shared.bit = and i32 %flags, 1
  ; Another block's traces in shared memory are from before it was handed to this block.
  %global = icmp eq i32 %shared.bit, 0
  %result = select i1 %same.block, i1 %same.interval, i1 %global
  ret i1 %result
}

; Whether thread `other` of this block and the current one met in their warp after collective number `stamp`: in any
; collective, or in a barrier.
define internal i1 @met(i32 %other, i32 %first, i32 %stamp, i1 %any.collective) {
entry:
  %index = sub i32 %other, %first
  %count = call i32 @block_threads()
  %same.block = icmp ult i32 %index, %count
  br i1 %same.block, label %warp, label %no
warp:
  %mine = call i32 @current()
  %differing = xor i32 %mine, %index
  %same.warp = icmp ult i32 %differing, 32
  br i1 %same.warp, label %compare, label %no
compare:
  %my.last = call i32 @last_meeting(i32 %mine, i1 %any.collective)
  %its.last = call i32 @last_meeting(i32 %index, i1 %any.collective)
  %me = icmp ugt i32 %my.last, %stamp
  %it = icmp ugt i32 %its.last, %stamp
  %both = and i1 %me, %it
  ret i1 %both
no:
  ret i1 false
}

define internal i32 @last_meeting(i32 %index, i1 %any.collective) alwaysinline {
  %thread = call ptr @thread_at(i32 %index)
  %collective.at = getelementptr %thread, ptr %thread, i64 0, i32 9
  %collective = load i32, ptr %collective.at
  %barrier.at = getelementptr %thread, ptr %thread, i64 0, i32 10
  %barrier = load i32, ptr %barrier.at
  %last = select i1 %any.collective, i32 %collective, i32 %barrier
  ret i32 %last
}

; Collectives that the current thread's warp has completed.
define internal i32 @stamp() alwaysinline {
  %mine = call i32 @current()
  %warp = lshr i32 %mine, 5
  %wide = zext i32 %warp to i64
  %at = getelementptr [32 x i32], ptr @collectives, i64 0, i64 %wide
  %stamp = load i32, ptr %at
  ret i32 %stamp
}

define internal ptr @cell_of(ptr %row, i64 %address) alwaysinline {
  %begin = load i64, ptr %row
  %cells.at = getelementptr %row, ptr %row, i64 0, i32 2
  %cells = load ptr, ptr %cells.at
  %offset = sub i64 %address, %begin
  %cell = getelementptr %cell, ptr %cells, i64 %offset
  ret ptr %cell
}

; Whether the last change of the byte and an access of the current thread race.
define internal i1 @races_with_writer(ptr %cell, i32 %mine, i32 %first, i32 %flags, i32 %info, i1 %atomic) alwaysinline {
entry:
  %writer = load i32, ptr %cell
  %nobody = icmp eq i32 %writer, 0
  %myself = icmp eq i32 %writer, %mine
  %harmless = or i1 %nobody, %myself
  br i1 %harmless, label %no, label %check
check:
  %written.at = getelementptr %cell, ptr %cell, i64 0, i32 2
  %written = load i32, ptr %written.at
  %unordered = call i1 @unordered(i32 %writer, i32 %written, i32 %first, i32 %flags)
  %atomic.change = and i32 %info, 65536
  %changed.atomically = icmp ne i32 %atomic.change, 0
  %both.atomic = and i1 %atomic, %changed.atomically
  %serious = xor i1 %both.atomic, true
  %likely = and i1 %unordered, %serious
  br i1 %likely, label %warp, label %no
warp:
  %stamp.at = getelementptr %cell, ptr %cell, i64 0, i32 6
  %stamp = load i32, ptr %stamp.at
  %met = call i1 @met(i32 %writer, i32 %first, i32 %stamp, i1 false)
  %race = xor i1 %met, true
  ret i1 %race
no:
  ret i1 false
}

; Whether a reader of the byte since its last change and a write by the current thread race.
define internal i1 @races_with_readers(ptr %cell, i32 %mine, i32 %first, i32 %flags, i32 %info, i1 %atomic) alwaysinline {
entry:
  %reader.at = getelementptr %cell, ptr %cell, i64 0, i32 1
  %reader = load i32, ptr %reader.at
  %unread = icmp eq i32 %reader, 0
  %several.bit = and i32 %info, 131072
  %alone = icmp eq i32 %several.bit, 0
  %reader.mine = icmp eq i32 %reader, %mine
  %only.me = and i1 %alone, %reader.mine
  %reads.atomic.bit = and i32 %info, 262144
  %reads.atomic = icmp ne i32 %reads.atomic.bit, 0
  %atomic.pair = and i1 %atomic, %reads.atomic
  %mine.or.unread = or i1 %unread, %only.me
  %harmless = or i1 %mine.or.unread, %atomic.pair
  br i1 %harmless, label %no, label %check
check:
  %read.at = getelementptr %cell, ptr %cell, i64 0, i32 3
  %read = load i32, ptr %read.at
  %unordered = call i1 @unordered(i32 %reader, i32 %read, i32 %first, i32 %flags)
  br i1 %unordered, label %warp, label %no
warp:
  %stamp.at = getelementptr %cell, ptr %cell, i64 0, i32 7
  %stamp = load i32, ptr %stamp.at
  %warps.bit = and i32 %info, 524288
  %one.warp = icmp eq i32 %warps.bit, 0
  %met = call i1 @met(i32 %reader, i32 %first, i32 %stamp, i1 true)
  %calm = and i1 %met, %one.warp
  %race = xor i1 %calm, true
  ret i1 %race
no:
  ret i1 false
}
