; Barriers of a block. An aligned barrier wants every thread of the block at one and the same call.

; What a kernel calls. `count` 0 is all threads. Operations: 0 none, 1 and, 2 or, 3 popc of `value`.
define i32 @simt_barrier(i32 %site, i32 %operation, i32 %number, i32 %count, i32 %value) {
  %index = call i32 @current()
  %thread = call ptr @thread_at(i32 %index)
  %site.at = getelementptr %thread, ptr %thread, i64 0, i32 2
  store i32 %site, ptr %site.at
  %operation.at = getelementptr %thread, ptr %thread, i64 0, i32 3
  store i32 %operation, ptr %operation.at
  %number.at = getelementptr %thread, ptr %thread, i64 0, i32 4
  store i32 %number, ptr %number.at
  %count.at = getelementptr %thread, ptr %thread, i64 0, i32 5
  store i32 %count, ptr %count.at
  %value.at = getelementptr %thread, ptr %thread, i64 0, i32 7
  store i32 %value, ptr %value.at
  call void @suspend(i32 1)
  %result.at = getelementptr %thread, ptr %thread, i64 0, i32 8
  %result = load i64, ptr %result.at
  %word = trunc i64 %result to i32
  ret i32 %word
}

; Releases the barrier of the first waiting thread whose barrier is complete; whether there was one.
define internal i1 @release_barriers(i32 %count) {
entry:
  br label %each
each:
  %index = phi i32 [ 0, %entry ], [ %next, %after ]
  %thread = call ptr @thread_at(i32 %index)
  %status.at = getelementptr %thread, ptr %thread, i64 0, i32 1
  %status = load i32, ptr %status.at
  %waits = icmp eq i32 %status, 1
  br i1 %waits, label %look, label %after
look:
  %complete = call i1 @barrier_complete(i32 %index, i32 %count)
  br i1 %complete, label %open, label %after
open:
  call void @open_barrier(i32 %index, i32 %count)
  %interval = load i32, ptr @interval
  %interval.next = add i32 %interval, 1
  store i32 %interval.next, ptr @interval
  ret i1 true
after:
  %next = add i32 %index, 1
  %more = icmp ult i32 %next, %count
  br i1 %more, label %each, label %none
none:
  ret i1 false
}

; Whether the threads that the barrier of thread `first` waits for are all there. Fails when one is at another call.
define internal i1 @barrier_complete(i32 %first, i32 %count) {
entry:
  %mine = call ptr @thread_at(i32 %first)
  %my.site.at = getelementptr %thread, ptr %mine, i64 0, i32 2
  %my.site = load i32, ptr %my.site.at
  %my.number.at = getelementptr %thread, ptr %mine, i64 0, i32 4
  %my.number = load i32, ptr %my.number.at
  %my.count.at = getelementptr %thread, ptr %mine, i64 0, i32 5
  %my.count = load i32, ptr %my.count.at
  %everyone = icmp eq i32 %my.count, 0
  %wanted = select i1 %everyone, i32 %count, i32 %my.count
  br label %each
each:
  %index = phi i32 [ 0, %entry ], [ %next, %after ]
  %here = phi i32 [ 0, %entry ], [ %here.now, %after ]
  %thread = call ptr @thread_at(i32 %index)
  %status.at = getelementptr %thread, ptr %thread, i64 0, i32 1
  %status = load i32, ptr %status.at
  %waits = icmp eq i32 %status, 1
  %number.at = getelementptr %thread, ptr %thread, i64 0, i32 4
  %number = load i32, ptr %number.at
  %same = icmp eq i32 %number, %my.number
  %together = and i1 %waits, %same
  br i1 %together, label %compare, label %after
compare:
  %site.at = getelementptr %thread, ptr %thread, i64 0, i32 2
  %site = load i32, ptr %site.at
  %same.site = icmp eq i32 %site, %my.site
  %count.at = getelementptr %thread, ptr %thread, i64 0, i32 5
  %its.count = load i32, ptr %count.at
  %same.count = icmp eq i32 %its.count, %my.count
  %agrees = and i1 %same.site, %same.count
  br i1 %agrees, label %after, label %diverged
diverged:
  %wide = zext i32 %first to i64
  call void @fail(i32 3, i32 %my.site, i32 %index, i64 %wide, i64 0)
  unreachable
after:
  %more.here = phi i32 [ 0, %each ], [ 1, %compare ]
  %here.now = add i32 %here, %more.here
  %next = add i32 %index, 1
  %more = icmp ult i32 %next, %count
  br i1 %more, label %each, label %done
done:
  %complete = icmp eq i32 %here.now, %wanted
  ret i1 %complete
}

; Lets the threads at the barrier of thread `first` go on, each with the reduction of all their values.
define internal void @open_barrier(i32 %first, i32 %count) {
entry:
  %mine = call ptr @thread_at(i32 %first)
  %number.at = getelementptr %thread, ptr %mine, i64 0, i32 4
  %number = load i32, ptr %number.at
  %operation.at = getelementptr %thread, ptr %mine, i64 0, i32 3
  %operation = load i32, ptr %operation.at
  br label %count.each
count.each:
  %i = phi i32 [ 0, %entry ], [ %i.next, %count.each ]
  %set = phi i32 [ 0, %entry ], [ %set.now, %count.each ]
  %unset = phi i32 [ 0, %entry ], [ %unset.now, %count.each ]
  %i.thread = call ptr @thread_at(i32 %i)
  %i.here = call i1 @is_at_barrier(ptr %i.thread, i32 %number)
  %value.at = getelementptr %thread, ptr %i.thread, i64 0, i32 7
  %value = load i32, ptr %value.at
  %true = icmp ne i32 %value, 0
  %counts.true = and i1 %i.here, %true
  %false = xor i1 %true, true
  %counts.false = and i1 %i.here, %false
  %one.true = zext i1 %counts.true to i32
  %one.false = zext i1 %counts.false to i32
  %set.now = add i32 %set, %one.true
  %unset.now = add i32 %unset, %one.false
  %i.next = add i32 %i, 1
  %i.more = icmp ult i32 %i.next, %count
  br i1 %i.more, label %count.each, label %reduce
reduce:
  %every = icmp eq i32 %unset.now, 0
  %some = icmp ne i32 %set.now, 0
  %and = zext i1 %every to i64
  %or = zext i1 %some to i64
  %popc = zext i32 %set.now to i64
  %is.and = icmp eq i32 %operation, 1
  %is.popc = icmp eq i32 %operation, 3
  %or.popc = select i1 %is.popc, i64 %popc, i64 %or
  %result = select i1 %is.and, i64 %and, i64 %or.popc
  br label %each
each:
  %index = phi i32 [ 0, %reduce ], [ %next, %after ]
  %thread = call ptr @thread_at(i32 %index)
  %here = call i1 @is_at_barrier(ptr %thread, i32 %number)
  br i1 %here, label %go, label %after
go:
  %status.at = getelementptr %thread, ptr %thread, i64 0, i32 1
  store i32 0, ptr %status.at
  %result.at = getelementptr %thread, ptr %thread, i64 0, i32 8
  store i64 %result, ptr %result.at
  br label %after
after:
  %next = add i32 %index, 1
  %more = icmp ult i32 %next, %count
  br i1 %more, label %each, label %done
done:
  ret void
}

define internal i1 @is_at_barrier(ptr %thread, i32 %number) alwaysinline {
  %status.at = getelementptr %thread, ptr %thread, i64 0, i32 1
  %status = load i32, ptr %status.at
  %waits = icmp eq i32 %status, 1
  %number.at = getelementptr %thread, ptr %thread, i64 0, i32 4
  %its.number = load i32, ptr %number.at
  %same = icmp eq i32 %its.number, %number
  %here = and i1 %waits, %same
  ret i1 %here
}
