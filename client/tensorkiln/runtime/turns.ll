; The turns of loops without executing Python code: turns.py lays out the tables that are read here.

; What a program does in one turn, in order. A step is by its kind: 0 a kernel `function(pointers, values, 0, count)`, 1 the
; tasks of a crew `function(crew, tasks, count)`, 2 a loop, 3 a copy of `count` bytes to `function` from `pointers`.
%Step = type { i64, ptr, ptr, ptr, i64 }
%Steps = type { ptr, i64 }
; The number of turns so far, the bool of the condition, the most turns, steps before the first turn, the condition and the
; body at each of the two places, and copies after an even and after an odd number of turns.
%Loop = type { i64, ptr, i64, %Steps, [2 x %Steps], [2 x %Steps], [2 x %Steps] }

declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)

; Run steps. The result is 0, or the most turns of a loop that would have taken more.
define internal i64 @each(ptr %steps) {
entry:
  %first = load ptr, ptr %steps
  %count.at = getelementptr %Steps, ptr %steps, i32 0, i32 1
  %count = load i64, ptr %count.at
  br label %next
next:
  %number = phi i64 [ 0, %entry ], [ %number.after, %ended ]
  %more = icmp ult i64 %number, %count
  br i1 %more, label %step, label %done
step:
  %at = getelementptr %Step, ptr %first, i64 %number
  %kind = load i64, ptr %at
  %function.at = getelementptr %Step, ptr %at, i32 0, i32 1
  %function = load ptr, ptr %function.at
  %pointers.at = getelementptr %Step, ptr %at, i32 0, i32 2
  %pointers = load ptr, ptr %pointers.at
  %values.at = getelementptr %Step, ptr %at, i32 0, i32 3
  %values = load ptr, ptr %values.at
  %size.at = getelementptr %Step, ptr %at, i32 0, i32 4
  %size = load i64, ptr %size.at
  switch i64 %kind, label %kernel [ i64 1, label %tasks
                                    i64 2, label %loop
                                    i64 3, label %copy ]
kernel:
  call void %function(ptr %pointers, ptr %values, i64 0, i64 %size)
  br label %ended
tasks:
  call void %function(ptr %pointers, ptr %values, i64 %size)
  br label %ended
loop:
  %most = call i64 @turns(ptr %function, i64 -1, i64 1)
  %is.good = icmp eq i64 %most, 0
  br i1 %is.good, label %ended, label %failed
copy:
  call void @llvm.memmove.p0.p0.i64(ptr %function, ptr %pointers, i64 %size, i1 false)
  br label %ended
ended:
  %number.after = add i64 %number, 1
  br label %next
done:
  ret i64 0
failed:
  ret i64 %most
}

; Run up to `budget` turns of a loop, from its first one on if it is `new`. The result is 0 if it has ended, -1 if it goes
; on, or else the most turns of a loop that would have taken more.
define i64 @turns(ptr %loop, i64 %budget, i64 %new) {
entry:
  %decision.at = getelementptr %Loop, ptr %loop, i32 0, i32 1
  %decision = load ptr, ptr %decision.at
  %most.at = getelementptr %Loop, ptr %loop, i32 0, i32 2
  %most = load i64, ptr %most.at
  %is.new = icmp ne i64 %new, 0
  br i1 %is.new, label %begin, label %next
begin:
  store i64 0, ptr %loop
  %begin.at = getelementptr %Loop, ptr %loop, i32 0, i32 3
  %begun = call i64 @each(ptr %begin.at)
  br label %next
next:
  %left = phi i64 [ %budget, %entry ], [ %budget, %begin ], [ %left.after, %turned ]
  %number = load i64, ptr %loop
  %place = and i64 %number, 1
  %condition = getelementptr %Loop, ptr %loop, i32 0, i32 4, i64 %place
  %asked = call i64 @each(ptr %condition)
  %is.asked = icmp eq i64 %asked, 0
  br i1 %is.asked, label %decide, label %condition.failed
decide:
  %decided = load i8, ptr %decision
  %goes.on = icmp ne i8 %decided, 0
  br i1 %goes.on, label %check, label %end
check:
  %is.last = icmp eq i64 %number, %most
  br i1 %is.last, label %beyond, label %turn
turn:
  %body = getelementptr %Loop, ptr %loop, i32 0, i32 5, i64 %place
  %made = call i64 @each(ptr %body)
  %is.made = icmp eq i64 %made, 0
  br i1 %is.made, label %turned, label %body.failed
turned:
  %number.after = add i64 %number, 1
  store i64 %number.after, ptr %loop
  %left.after = sub i64 %left, 1
  %is.spent = icmp eq i64 %left.after, 0
  br i1 %is.spent, label %spent, label %next
end:
  %last = getelementptr %Loop, ptr %loop, i32 0, i32 6, i64 %place
  %copied = call i64 @each(ptr %last)
  ret i64 0
spent:
  ret i64 -1
beyond:
  ret i64 %most
condition.failed:
  ret i64 %asked
body.failed:
  ret i64 %made
}
