; The collectives themselves, for lanes that have all arrived.

define internal void @perform(i32 %base, i32 %first, i32 %members) {
entry:
  %thread = call ptr @thread_at(i32 %first)
  %operation.at = getelementptr %thread, ptr %thread, i64 0, i32 3
  %operation = load i32, ptr %operation.at
  %shuffles = icmp ult i32 %operation, 5
  br i1 %shuffles, label %apart, label %fold
fold:
  %folded = call i32 @fold(i32 %base, i32 %members, i32 %operation)
  %folded.wide = zext i32 %folded to i64
  br label %apart
apart:
  %common = phi i64 [ 0, %entry ], [ %folded.wide, %fold ]
  %warp = lshr i32 %base, 5
  %warp.wide = zext i32 %warp to i64
  %sequence.at = getelementptr [32 x i32], ptr @collectives, i64 0, i64 %warp.wide
  %sequence.before = load i32, ptr %sequence.at
  %sequence = add i32 %sequence.before, 1
  store i32 %sequence, ptr %sequence.at
  %waits = icmp eq i32 %operation, 0
  br label %head
head:
  %left = phi i32 [ %members, %apart ], [ %left.next, %store ]
  %some = icmp ne i32 %left, 0
  br i1 %some, label %each, label %wake
each:
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %below = sub i32 %left, 1
  %left.next = and i32 %left, %below
  %index = add i32 %base, %lane
  %each.thread = call ptr @thread_at(i32 %index)
  %shuffling = icmp ult i32 %operation, 5
  br i1 %shuffling, label %shuffle, label %store
shuffle:
  %moved = call i64 @shuffled(i32 %base, i32 %members, i32 %operation, i32 %lane)
  br label %store
store:
  %result = phi i64 [ %common, %each ], [ %moved, %shuffle ]
  %result.at = getelementptr %thread, ptr %each.thread, i64 0, i32 8
  store i64 %result, ptr %result.at
  %status.at = getelementptr %thread, ptr %each.thread, i64 0, i32 1
  store i32 0, ptr %status.at
  %collective.at = getelementptr %thread, ptr %each.thread, i64 0, i32 9
  store i32 %sequence, ptr %collective.at
  %barrier.at = getelementptr %thread, ptr %each.thread, i64 0, i32 10
  %barrier = load i32, ptr %barrier.at
  %barrier.now = select i1 %waits, i32 %sequence, i32 %barrier
  store i32 %barrier.now, ptr %barrier.at
  br label %head
wake:
  ret void
}

; PTX ISA, shfl.sync: the segment is in bits 8 to 12 of the clamp operand, the clamp itself in bits 0 to 4.
define internal i64 @shuffled(i32 %base, i32 %members, i32 %operation, i32 %lane) {
entry:
  %index = add i32 %base, %lane
  %thread = call ptr @thread_at(i32 %index)
  %operand.at = getelementptr %thread, ptr %thread, i64 0, i32 5
  %operand.raw = load i32, ptr %operand.at
  %operand = and i32 %operand.raw, 31
  %clamp.at = getelementptr %thread, ptr %thread, i64 0, i32 6
  %packed = load i32, ptr %clamp.at
  %clamp = and i32 %packed, 31
  %segment.high = lshr i32 %packed, 8
  %segment = and i32 %segment.high, 31
  %free = xor i32 %segment, 31
  %lowest = and i32 %lane, %segment
  %reach = and i32 %clamp, %free
  %limit = or i32 %lowest, %reach
  switch i32 %operation, label %nothing [
    i32 1, label %idx
    i32 2, label %up
    i32 3, label %down
    i32 4, label %bfly
  ]
nothing:
  ret i64 0
idx:
  %idx.offset = and i32 %operand, %free
  %idx.lane = or i32 %lowest, %idx.offset
  br label %bounded
up:
  %up.lane = sub i32 %lane, %operand
  %up.valid = icmp sge i32 %up.lane, %limit
  br label %pick
down:
  %down.lane = add i32 %lane, %operand
  br label %bounded
bfly:
  %bfly.lane = xor i32 %lane, %operand
  br label %bounded
bounded:
  %target = phi i32 [ %idx.lane, %idx ], [ %down.lane, %down ], [ %bfly.lane, %bfly ]
  %bounded.valid = icmp sle i32 %target, %limit
  br label %pick
pick:
  %wanted = phi i32 [ %up.lane, %up ], [ %target, %bounded ]
  %valid = phi i1 [ %up.valid, %up ], [ %bounded.valid, %bounded ]
  %source = select i1 %valid, i32 %wanted, i32 %lane
  %there = lshr i32 %members, %source
  %there.bit = and i32 %there, 1
  %takes.part = icmp ne i32 %there.bit, 0
  br i1 %takes.part, label %read, label %undefined
undefined:
  %site.at = getelementptr %thread, ptr %thread, i64 0, i32 2
  %site = load i32, ptr %site.at
  %wide.source = zext i32 %source to i64
  %wide.members = zext i32 %members to i64
  call void @fail(i32 7, i32 %site, i32 %index, i64 %wide.source, i64 %wide.members)
  unreachable
read:
  %source.index = add i32 %base, %source
  %source.thread = call ptr @thread_at(i32 %source.index)
  %value.at = getelementptr %thread, ptr %source.thread, i64 0, i32 7
  %value = load i32, ptr %value.at
  %wide = zext i32 %value to i64
  %predicate = zext i1 %valid to i64
  %high = shl i64 %predicate, 32
  %result = or i64 %wide, %high
  ret i64 %result
}

; Votes and reductions: one result for all members.
define internal i32 @fold(i32 %base, i32 %members, i32 %operation) {
entry:
  %first = call i32 @llvm.cttz.i32(i32 %members, i1 true)
  %first.index = add i32 %base, %first
  %first.thread = call ptr @thread_at(i32 %first.index)
  %first.at = getelementptr %thread, ptr %first.thread, i64 0, i32 7
  %start = load i32, ptr %first.at
  br label %head
head:
  %left = phi i32 [ %members, %entry ], [ %left.next, %next ]
  %sum = phi i32 [ %start, %entry ], [ %sum.now, %next ]
  %ballot = phi i32 [ 0, %entry ], [ %ballot.now, %next ]
  %some = icmp ne i32 %left, 0
  br i1 %some, label %each, label %done
each:
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %below = sub i32 %left, 1
  %left.next = and i32 %left, %below
  %index = add i32 %base, %lane
  %thread = call ptr @thread_at(i32 %index)
  %value.at = getelementptr %thread, ptr %thread, i64 0, i32 7
  %value = load i32, ptr %value.at
  %true = icmp ne i32 %value, 0
  %one = zext i1 %true to i32
  %bit = shl i32 %one, %lane
  %ballot.now = or i32 %ballot, %bit
  ; The running value starts as the first lane's own, which only an addition and an exclusive or would count twice.
  %is.first = icmp eq i32 %lane, %first
  br i1 %is.first, label %next, label %combine
combine:
  switch i32 %operation, label %next [
    i32 9, label %add
    i32 10, label %min
    i32 11, label %max
    i32 12, label %umin
    i32 13, label %umax
    i32 14, label %and
    i32 15, label %or
    i32 16, label %xor
  ]
add:
  %added = add i32 %sum, %value
  br label %next
min:
  %min.value = call i32 @llvm.smin.i32(i32 %sum, i32 %value)
  br label %next
max:
  %max.value = call i32 @llvm.smax.i32(i32 %sum, i32 %value)
  br label %next
umin:
  %umin.value = call i32 @llvm.umin.i32(i32 %sum, i32 %value)
  br label %next
umax:
  %umax.value = call i32 @llvm.umax.i32(i32 %sum, i32 %value)
  br label %next
and:
  %anded = and i32 %sum, %value
  br label %next
or:
  %ored = or i32 %sum, %value
  br label %next
xor:
  %xored = xor i32 %sum, %value
  br label %next
next:
  %sum.now = phi i32 [ %sum, %each ], [ %sum, %combine ], [ %added, %add ], [ %min.value, %min ], [ %max.value, %max ], [ %umin.value, %umin ], [ %umax.value, %umax ], [ %anded, %and ], [ %ored, %or ], [ %xored, %xor ]
  br label %head
done:
  %none = icmp eq i32 %ballot, 0
  %every = icmp eq i32 %ballot, %members
  %any = xor i1 %none, true
  %uniform = or i1 %none, %every
  %all.word = zext i1 %every to i32
  %any.word = zext i1 %any to i32
  %uniform.word = zext i1 %uniform to i32
  switch i32 %operation, label %reduced [
    i32 5, label %vote.all
    i32 6, label %vote.any
    i32 7, label %vote.uni
    i32 8, label %vote.ballot
  ]
reduced:
  ret i32 %sum
vote.all:
  ret i32 %all.word
vote.any:
  ret i32 %any.word
vote.uni:
  ret i32 %uniform.word
vote.ballot:
  ret i32 %ballot
}

declare i32 @llvm.smin.i32(i32, i32)
declare i32 @llvm.smax.i32(i32, i32)
declare i32 @llvm.umax.i32(i32, i32)
