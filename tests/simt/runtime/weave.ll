; A block whose threads suspend: each is a fiber, resumed in a fresh order until all have exited.

define internal void @weave() {
entry:
  %count = call i32 @block_threads()
  call void @forget_collectives(i32 %count)
  br label %create
create:
  %index = phi i32 [ 0, %entry ], [ %index.next, %create ]
  %number = add i32 %index, 1
  %stack = call ptr @fresh_stack(i32 %number, ptr @thread_main)
  %thread = call ptr @thread_at(i32 %index)
  store ptr %stack, ptr %thread
  %status.at = getelementptr %thread, ptr %thread, i64 0, i32 1
  store i32 0, ptr %status.at
  %index.next = add i32 %index, 1
  %index.more = icmp ult i32 %index.next, %count
  br i1 %index.more, label %create, label %round

round:
  %exited = phi i32 [ 0, %create ], [ %exited.now, %wake ], [ %exited.now, %barriers ]
  call void @shuffle_order(i32 %count)
  %left = call i32 @resume_ready(i32 %count)
  %exited.now = add i32 %exited, %left
  %all = icmp eq i32 %exited.now, %count
  br i1 %all, label %done, label %wake
wake:
  %woken = call i1 @release_warps(i32 %count)
  br i1 %woken, label %round, label %barriers
barriers:
  %released = call i1 @release_barriers(i32 %count)
  br i1 %released, label %round, label %stuck
stuck:
  call void @fail(i32 1, i32 -1, i32 -1, i64 0, i64 0)
  unreachable
done:
  ret void
}

; Runs every ready thread until it suspends or exits; how many exited.
define internal i32 @resume_ready(i32 %count) {
entry:
  br label %each
each:
  %turn = phi i32 [ 0, %entry ], [ %next, %after ]
  %exited = phi i32 [ 0, %entry ], [ %exited.now, %after ]
  %index = call i32 @in_order(i32 %turn)
  %thread = call ptr @thread_at(i32 %index)
  %status.at = getelementptr %thread, ptr %thread, i64 0, i32 1
  %status = load i32, ptr %status.at
  %ready = icmp eq i32 %status, 0
  br i1 %ready, label %resume, label %after
resume:
  call void @place(i32 %index)
  %stack = load ptr, ptr %thread
  call void @simt_switch(ptr @driver_stack, ptr %stack)
  %status.now = load i32, ptr %status.at
  %gone = icmp eq i32 %status.now, 3
  %one = zext i1 %gone to i32
  br label %after
after:
  %more.exited = phi i32 [ 0, %each ], [ %one, %resume ]
  %exited.now = add i32 %exited, %more.exited
  %next = add i32 %turn, 1
  %more = icmp ult i32 %next, %count
  br i1 %more, label %each, label %done
done:
  ret i32 %exited.now
}

define internal void @thread_main() noreturn {
  %launch = load ptr, ptr @launched
  %kernel = load ptr, ptr %launch
  %arguments.at = getelementptr %launch, ptr %launch, i64 0, i32 1
  %arguments = load ptr, ptr %arguments.at
  call void %kernel(ptr %arguments)
  call void @suspend(i32 3)
  unreachable
}

define internal void @suspend(i32 %status) {
  %index = call i32 @current()
  %thread = call ptr @thread_at(i32 %index)
  %status.at = getelementptr %thread, ptr %thread, i64 0, i32 1
  store i32 %status, ptr %status.at
  %driver = load ptr, ptr @driver_stack
  call void @simt_switch(ptr %thread, ptr %driver)
  ret void
}
