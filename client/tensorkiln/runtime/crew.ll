; Kernels divided over threads: crew.py lays out what is read here, and says what it is. @PAUSE@ is a call of an instruction, @FUTEX@
; and @YIELD@ are numbers of system calls.
;
; `sequence` is odd while a task is open. A worker enters the open task: it counts itself as active, and looks again
; whether the task is still open. The caller closes the task once no work is left, then waits until nobody is active. All
; of these accesses are sequentially consistent, so either the worker sees that the task is closed, or the caller sees the
; worker.

%Range = type { i64, i64, [6 x i64] }
%Crew = type { i64, i32, i32, i64, ptr, ptr, ptr, i64, [64 x %Range] }
%Task = type { ptr, ptr, i64, ptr, i64, i64, ptr, ptr }
%Seat = type { ptr, i64 }

define internal void @rest() alwaysinline {
  call void @PAUSE@
  ret void
}

declare void @llvm.x86.sse2.pause()
declare void @llvm.aarch64.hint(i32)

; Write the time to an entry of the task's times, if it has any: nanoseconds of the monotonic clock.
define internal void @stamp(ptr %crew, ptr %task, i64 %which) {
entry:
  %times.at = getelementptr %Task, ptr %task, i32 0, i32 7
  %times = load ptr, ptr %times.at
  %is.timed = icmp ne ptr %times, null
  br i1 %is.timed, label %read, label %done
read:
  %now = alloca { i64, i64 }
  %clock.at = getelementptr %Crew, ptr %crew, i32 0, i32 6
  %clock = load ptr, ptr %clock.at
  %status = call i32 %clock(i32 1, ptr %now)
  %seconds = load i64, ptr %now
  %rest.at = getelementptr { i64, i64 }, ptr %now, i32 0, i32 1
  %rest = load i64, ptr %rest.at
  %whole = mul i64 %seconds, 1000000000
  %time = add i64 %whole, %rest
  %place = getelementptr i64, ptr %times, i64 %which
  store i64 %time, ptr %place
  br label %done
done:
  ret void
}

; Run what is left of a worker's own range, then of the others', a chunk at a time.
define internal void @share(ptr %crew, ptr %task, i64 %worker) {
entry:
  %function = load ptr, ptr %task
  %pointers.at = getelementptr %Task, ptr %task, i32 0, i32 1
  %all.pointers = load ptr, ptr %pointers.at
  %stride.at = getelementptr %Task, ptr %task, i32 0, i32 2
  %stride = load i64, ptr %stride.at
  %values.at = getelementptr %Task, ptr %task, i32 0, i32 3
  %values = load ptr, ptr %values.at
  %workers.at = getelementptr %Task, ptr %task, i32 0, i32 4
  %workers = load i64, ptr %workers.at
  %chunk.at = getelementptr %Task, ptr %task, i32 0, i32 5
  %chunk = load i64, ptr %chunk.at
  %far = mul i64 %worker, %stride
  %pointers = getelementptr i8, ptr %all.pointers, i64 %far
  %first.stamp = shl i64 %worker, 1
  %last.stamp = or i64 %first.stamp, 1
  call void @stamp(ptr %crew, ptr %task, i64 %first.stamp)
  br label %range
range:
  %turn = phi i64 [ 0, %entry ], [ %turn.after, %range.done ]
  %has.ranges = icmp ult i64 %turn, %workers
  br i1 %has.ranges, label %choose, label %done
choose:
  %sum = add i64 %worker, %turn
  %owner = urem i64 %sum, %workers
  %range.at = getelementptr %Crew, ptr %crew, i32 0, i32 8, i64 %owner
  %end.at = getelementptr %Range, ptr %range.at, i32 0, i32 1
  %end = load i64, ptr %end.at
  br label %claim
claim:
  %start = atomicrmw add ptr %range.at, i64 %chunk seq_cst
  %is.left = icmp slt i64 %start, %end
  br i1 %is.left, label %run, label %range.done
run:
  %stop = add i64 %start, %chunk
  %last = call i64 @llvm.smin.i64(i64 %stop, i64 %end)
  call void %function(ptr %pointers, ptr %values, i64 %start, i64 %last)
  br label %claim
range.done:
  %turn.after = add i64 %turn, 1
  br label %range
done:
  call void @stamp(ptr %crew, ptr %task, i64 %last.stamp)
  ret void
}

declare i64 @llvm.smin.i64(i64, i64)

; The thread of a worker, which never ends.
define ptr @work(ptr %seat) {
entry:
  %crew = load ptr, ptr %seat
  %worker.at = getelementptr %Seat, ptr %seat, i32 0, i32 1
  %worker = load i64, ptr %worker.at
  %sequence.at = getelementptr %Crew, ptr %crew, i32 0, i32 1
  %sleepers.at = getelementptr %Crew, ptr %crew, i32 0, i32 2
  %active.at = getelementptr %Crew, ptr %crew, i32 0, i32 3
  %task.at = getelementptr %Crew, ptr %crew, i32 0, i32 4
  %syscall.at = getelementptr %Crew, ptr %crew, i32 0, i32 5
  %syscall = load ptr, ptr %syscall.at
  %spins.at = getelementptr %Crew, ptr %crew, i32 0, i32 7
  %spins = load i64, ptr %spins.at
  %place = trunc i64 %worker to i32
  %lowest = and i32 %place, 31
  %bit = shl i32 1, %lowest
  br label %look
look:
  %seen = phi i32 [ 0, %entry ], [ %seen, %pause ], [ %seen, %woken ], [ %now, %left ]
  %spun = phi i64 [ 0, %entry ], [ %spun.after, %pause ], [ 0, %woken ], [ 0, %left ]
  %now = load atomic i32, ptr %sequence.at seq_cst, align 4
  %odd = and i32 %now, 1
  %is.open = icmp eq i32 %odd, 1
  %is.new = icmp ne i32 %now, %seen
  %is.task = and i1 %is.open, %is.new
  br i1 %is.task, label %enter, label %idle
idle:
  %is.tired = icmp uge i64 %spun, %spins
  br i1 %is.tired, label %sleep, label %pause
pause:
  %spun.after = add i64 %spun, 1
  call void @rest()
  br label %look
sleep:
  %before = atomicrmw add ptr %sleepers.at, i32 1 seq_cst
  ; FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG: returns at once if the sequence has changed.
  %waited = call i64 (i64, ...) %syscall(i64 @FUTEX@, ptr %sequence.at, i32 137, i32 %now, ptr null, ptr null, i32 %bit)
  %after = atomicrmw sub ptr %sleepers.at, i32 1 seq_cst
  br label %woken
woken:
  br label %look
enter:
  %others = atomicrmw add ptr %active.at, i64 1 seq_cst
  %again = load atomic i32, ptr %sequence.at seq_cst, align 4
  %is.still = icmp eq i32 %again, %now
  br i1 %is.still, label %ask, label %leave
ask:
  %task = load ptr, ptr %task.at
  %workers.at = getelementptr %Task, ptr %task, i32 0, i32 4
  %workers = load i64, ptr %workers.at
  %is.wanted = icmp ult i64 %worker, %workers
  br i1 %is.wanted, label %help, label %leave
help:
  call void @share(ptr %crew, ptr %task, i64 %worker)
  br label %leave
leave:
  %rest.active = atomicrmw sub ptr %active.at, i64 1 seq_cst
  br label %left
left:
  br label %look
}

; Deal the work-groups of a task to ranges, open the task, take part in it, and wait for the others.
define internal void @shared(ptr %crew, ptr %task) {
entry:
  %sequence.at = getelementptr %Crew, ptr %crew, i32 0, i32 1
  %sleepers.at = getelementptr %Crew, ptr %crew, i32 0, i32 2
  %active.at = getelementptr %Crew, ptr %crew, i32 0, i32 3
  %task.at = getelementptr %Crew, ptr %crew, i32 0, i32 4
  %syscall.at = getelementptr %Crew, ptr %crew, i32 0, i32 5
  %syscall = load ptr, ptr %syscall.at
  %workers.at = getelementptr %Task, ptr %task, i32 0, i32 4
  %workers = load i64, ptr %workers.at
  %edges.at = getelementptr %Task, ptr %task, i32 0, i32 6
  %edges = load ptr, ptr %edges.at
  store ptr %task, ptr %task.at
  br label %deal
deal:
  %number = phi i64 [ 0, %entry ], [ %number.after, %deal ]
  %range.at = getelementptr %Crew, ptr %crew, i32 0, i32 8, i64 %number
  %end.at = getelementptr %Range, ptr %range.at, i32 0, i32 1
  %number.after = add i64 %number, 1
  %first.at = getelementptr i64, ptr %edges, i64 %number
  %last.at = getelementptr i64, ptr %edges, i64 %number.after
  %first = load i64, ptr %first.at
  %last = load i64, ptr %last.at
  store i64 %first, ptr %range.at
  store i64 %last, ptr %end.at
  %is.more = icmp ult i64 %number.after, %workers
  br i1 %is.more, label %deal, label %open
open:
  %opened = atomicrmw add ptr %sequence.at, i32 1 seq_cst
  %sleepers = load atomic i32, ptr %sleepers.at seq_cst, align 4
  %any.sleeps = icmp ne i32 %sleepers, 0
  br i1 %any.sleeps, label %wake, label %take
wake:
  %is.few = icmp ult i64 %workers, 32
  %count = trunc i64 %workers to i32
  %power = shl i32 1, %count
  %below = sub i32 %power, 1
  %mask = select i1 %is.few, i32 %below, i32 -1
  ; FUTEX_WAKE_BITSET | FUTEX_PRIVATE_FLAG
  %woke = call i64 (i64, ...) %syscall(i64 @FUTEX@, ptr %sequence.at, i32 138, i32 2147483647, ptr null, ptr null, i32 %mask)
  br label %take
take:
  call void @share(ptr %crew, ptr %task, i64 0)
  %closed = atomicrmw add ptr %sequence.at, i32 1 seq_cst
  br label %wait
wait:
  %spun = phi i64 [ 0, %take ], [ %spun.after, %pause ], [ %spun.after, %yield ]
  %active = load atomic i64, ptr %active.at seq_cst, align 8
  %is.done = icmp eq i64 %active, 0
  br i1 %is.done, label %done, label %again
again:
  %spun.after = add i64 %spun, 1
  %is.long = icmp ugt i64 %spun, 2000
  br i1 %is.long, label %yield, label %pause
pause:
  call void @rest()
  br label %wait
yield:
  ; A worker may wait for this processor.
  %yielded = call i64 (i64, ...) %syscall(i64 @YIELD@)
  br label %wait
done:
  ret void
}

; Run tasks one after the other. Another caller has the workers: then the tasks run on this thread.
define void @run(ptr %crew, ptr %tasks, i64 %count) {
entry:
  %taken = cmpxchg ptr %crew, i64 0, i64 1 seq_cst seq_cst
  %is.ours = extractvalue { i64, i1 } %taken, 1
  br label %next
next:
  %number = phi i64 [ 0, %entry ], [ %number.after, %ran ]
  %is.more = icmp ult i64 %number, %count
  br i1 %is.more, label %look, label %end
look:
  %task = getelementptr %Task, ptr %tasks, i64 %number
  %workers.at = getelementptr %Task, ptr %task, i32 0, i32 4
  %workers = load i64, ptr %workers.at
  %is.wide = icmp ugt i64 %workers, 1
  %is.shared = and i1 %is.wide, %is.ours
  br i1 %is.shared, label %divide, label %alone
divide:
  call void @shared(ptr %crew, ptr %task)
  br label %ran
alone:
  %function = load ptr, ptr %task
  %pointers.at = getelementptr %Task, ptr %task, i32 0, i32 1
  %pointers = load ptr, ptr %pointers.at
  %values.at = getelementptr %Task, ptr %task, i32 0, i32 3
  %values = load ptr, ptr %values.at
  %edges.at = getelementptr %Task, ptr %task, i32 0, i32 6
  %edges = load ptr, ptr %edges.at
  %groups.at = getelementptr i64, ptr %edges, i64 %workers
  %groups = load i64, ptr %groups.at
  call void %function(ptr %pointers, ptr %values, i64 0, i64 %groups)
  br label %ran
ran:
  %number.after = add i64 %number, 1
  br label %next
end:
  br i1 %is.ours, label %release, label %done
release:
  store atomic i64 0, ptr %crew seq_cst, align 8
  br label %done
done:
  ret void
}
