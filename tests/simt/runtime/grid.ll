; A launch: every block after the other in an order that the launch gives, each with poisoned shared memory.

; Code 0 is success. Runs on a stack of its own, so that a failure can leave from any depth.
define i32 @simt_run(ptr %launch, i64 %seed) {
  store ptr %launch, ptr @launched
  store i64 %seed, ptr @random
  store i32 0, ptr @report
  store ptr null, ptr @last_row
  store ptr null, ptr @pending
  call void @begin(ptr %launch)
  %driver = call ptr @fresh_stack(i32 0, ptr @drive)
  call void @simt_switch(ptr @main_stack, ptr %driver)
  %code = load i32, ptr @report
  ret i32 %code
}

define internal void @leave() noreturn {
  %main = load ptr, ptr @main_stack
  call void @simt_switch(ptr @driver_stack, ptr %main)
  unreachable
}

define void @fail(i32 %code, i32 %site, i32 %other, i64 %address, i64 %bytes) noreturn {
  %thread = call i32 @current()
  %block = load i64, ptr @block
  store i32 %code, ptr @report
  store i32 %site, ptr getelementptr (%report, ptr @report, i64 0, i32 1)
  store i32 %thread, ptr getelementptr (%report, ptr @report, i64 0, i32 2)
  store i32 %other, ptr getelementptr (%report, ptr @report, i64 0, i32 3)
  store i64 %block, ptr getelementptr (%report, ptr @report, i64 0, i32 4)
  store i64 %address, ptr getelementptr (%report, ptr @report, i64 0, i32 5)
  store i64 %bytes, ptr getelementptr (%report, ptr @report, i64 0, i32 6)
  call void @leave()
  unreachable
}

; The registers that are the same for all threads, and the table of the others.
define internal void @begin(ptr %launch) {
entry:
  %block.at = getelementptr %launch, ptr %launch, i64 0, i32 11
  call void @llvm.memcpy.p0.p0.i64(ptr getelementptr ([13 x i32], ptr @registers, i64 0, i64 6), ptr %block.at, i64 24, i1 false)
  %width = load i32, ptr getelementptr ([13 x i32], ptr @registers, i64 0, i64 6)
  %height = load i32, ptr getelementptr ([13 x i32], ptr @registers, i64 0, i64 7)
  %count = call i32 @block_threads()
  call void @forget_collectives(i32 %count)
  br label %each
each:
  %thread = phi i32 [ 0, %entry ], [ %next, %each ]
  %wide = zext i32 %thread to i64
  %x = urem i32 %thread, %width
  %row = udiv i32 %thread, %width
  %y = urem i32 %row, %height
  %z = udiv i32 %row, %height
  %x.at = getelementptr [1024 x [3 x i32]], ptr @positions, i64 0, i64 %wide, i64 0
  %y.at = getelementptr i32, ptr %x.at, i64 1
  %z.at = getelementptr i32, ptr %x.at, i64 2
  store i32 %x, ptr %x.at
  store i32 %y, ptr %y.at
  store i32 %z, ptr %z.at
  %order.at = getelementptr [1024 x i32], ptr @order, i64 0, i64 %wide
  store i32 %thread, ptr %order.at
  %next = add i32 %thread, 1
  %more = icmp ult i32 %next, %count
  br i1 %more, label %each, label %done
done:
  ret void
}

define internal void @drive() noreturn {
entry:
  %launch = load ptr, ptr @launched
  %blocks.at = getelementptr %launch, ptr %launch, i64 0, i32 4
  %blocks = load i64, ptr %blocks.at
  %start.at = getelementptr %launch, ptr %launch, i64 0, i32 5
  %start = load i64, ptr %start.at
  %step.at = getelementptr %launch, ptr %launch, i64 0, i32 6
  %step = load i64, ptr %step.at
  %suspends.at = getelementptr %launch, ptr %launch, i64 0, i32 10
  %suspends = load i32, ptr %suspends.at
  %weaving = icmp ne i32 %suspends, 0
  br label %each
each:
  %turn = phi i64 [ 0, %entry ], [ %next, %done ]
  %distance = mul i64 %turn, %step
  %place = add i64 %start, %distance
  %block = urem i64 %place, %blocks
  call void @enter_block(i64 %block)
  call void @poison_shared(ptr %launch)
  br i1 %weaving, label %weave, label %sweep
weave:
  call void @weave()
  br label %done
sweep:
  call void @sweep(ptr %launch)
  br label %done
done:
  call void @check_shared(ptr %launch)
  %next = add i64 %turn, 1
  %more = icmp ult i64 %next, %blocks
  br i1 %more, label %each, label %finish
finish:
  call void @leave()
  unreachable
}

define internal void @enter_block(i64 %block) {
  store i64 %block, ptr @block
  store i32 0, ptr @interval
  %width = load i32, ptr getelementptr ([13 x i32], ptr @registers, i64 0, i64 9)
  %height = load i32, ptr getelementptr ([13 x i32], ptr @registers, i64 0, i64 10)
  %linear = trunc i64 %block to i32
  %x = urem i32 %linear, %width
  %row = udiv i32 %linear, %width
  %y = urem i32 %row, %height
  %z = udiv i32 %row, %height
  store i32 %x, ptr getelementptr ([13 x i32], ptr @registers, i64 0, i64 3)
  store i32 %y, ptr getelementptr ([13 x i32], ptr @registers, i64 0, i64 4)
  store i32 %z, ptr getelementptr ([13 x i32], ptr @registers, i64 0, i64 5)
  ret void
}

; A block of a kernel that never suspends: its threads one after the other on this stack.
define internal void @sweep(ptr %launch) {
entry:
  %kernel = load ptr, ptr %launch
  %arguments.at = getelementptr %launch, ptr %launch, i64 0, i32 1
  %arguments = load ptr, ptr %arguments.at
  %count = call i32 @block_threads()
  call void @shuffle_order(i32 %count)
  br label %each
each:
  %turn = phi i32 [ 0, %entry ], [ %next, %each ]
  %thread = call i32 @in_order(i32 %turn)
  call void @place(i32 %thread)
  call void %kernel(ptr %arguments)
  %next = add i32 %turn, 1
  %more = icmp ult i32 %next, %count
  br i1 %more, label %each, label %done
done:
  ret void
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
