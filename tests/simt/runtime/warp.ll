; Collectives of a warp: 32 threads with consecutive linear numbers. A mask names the lanes that take part; every one of
; them must come to the same call with the same mask. Operations:
;   0 none (a warp barrier)   1..4 shuffle idx, up, down, bfly   5..8 vote all, any, uni, ballot
;   9..16 reduction add, min, max, umin, umax, and, or, xor

; What a kernel calls. The result is in the low half, a shuffle's predicate in bit 32.
define i64 @simt_collective(i32 %site, i32 %operation, i32 %mask, i32 %value, i32 %lane, i32 %clamp) {
entry:
  %index = call i32 @current()
  %own.lane = and i32 %index, 31
  %own = lshr i32 %mask, %own.lane
  %own.bit = and i32 %own, 1
  %member = icmp ne i32 %own.bit, 0
  br i1 %member, label %wait, label %stranger
stranger:
  %wide.mask = zext i32 %mask to i64
  call void @fail(i32 4, i32 %site, i32 -1, i64 %wide.mask, i64 0)
  unreachable
wait:
  %thread = call ptr @thread_at(i32 %index)
  %site.at = getelementptr %thread, ptr %thread, i64 0, i32 2
  store i32 %site, ptr %site.at
  %operation.at = getelementptr %thread, ptr %thread, i64 0, i32 3
  store i32 %operation, ptr %operation.at
  %mask.at = getelementptr %thread, ptr %thread, i64 0, i32 4
  store i32 %mask, ptr %mask.at
  %lane.at = getelementptr %thread, ptr %thread, i64 0, i32 5
  store i32 %lane, ptr %lane.at
  %clamp.at = getelementptr %thread, ptr %thread, i64 0, i32 6
  store i32 %clamp, ptr %clamp.at
  %value.at = getelementptr %thread, ptr %thread, i64 0, i32 7
  store i32 %value, ptr %value.at
  call void @suspend(i32 2)
  %result.at = getelementptr %thread, ptr %thread, i64 0, i32 8
  %result = load i64, ptr %result.at
  ret i64 %result
}

; Completes what can be completed in every warp; whether any thread may go on.
define internal i1 @release_warps(i32 %count) {
entry:
  br label %each
each:
  %base = phi i32 [ 0, %entry ], [ %next, %after ]
  %woken = phi i1 [ false, %entry ], [ %woken.now, %after ]
  %left = sub i32 %count, %base
  %lanes = call i32 @llvm.umin.i32(i32 %left, i32 32)
  %here = call i1 @release_warp(i32 %base, i32 %lanes)
  br label %after
after:
  %woken.now = or i1 %woken, %here
  %next = add i32 %base, 32
  %more = icmp ult i32 %next, %count
  br i1 %more, label %each, label %done
done:
  ret i1 %woken.now
}

; Bit i is set when lane i has the status.
define internal i32 @lanes_with(i32 %base, i32 %lanes, i32 %wanted) alwaysinline {
entry:
  br label %each
each:
  %lane = phi i32 [ 0, %entry ], [ %next, %each ]
  %bits = phi i32 [ 0, %entry ], [ %bits.now, %each ]
  %index = add i32 %base, %lane
  %thread = call ptr @thread_at(i32 %index)
  %status.at = getelementptr %thread, ptr %thread, i64 0, i32 1
  %status = load i32, ptr %status.at
  %has = icmp eq i32 %status, %wanted
  %one = zext i1 %has to i32
  %bit = shl i32 %one, %lane
  %bits.now = or i32 %bits, %bit
  %next = add i32 %lane, 1
  %more = icmp ult i32 %next, %lanes
  br i1 %more, label %each, label %done
done:
  ret i32 %bits.now
}

define internal i1 @release_warp(i32 %base, i32 %lanes) {
entry:
  %waiting = call i32 @lanes_with(i32 %base, i32 %lanes, i32 2)
  br label %head
head:
  %pending = phi i32 [ %waiting, %entry ], [ %pending.next, %after ]
  %woken = phi i1 [ false, %entry ], [ %woken.now, %after ]
  %some = icmp ne i32 %pending, 0
  br i1 %some, label %group, label %done
group:
  %lane = call i32 @llvm.cttz.i32(i32 %pending, i1 true)
  %index = add i32 %base, %lane
  %thread = call ptr @thread_at(i32 %index)
  %mask.at = getelementptr %thread, ptr %thread, i64 0, i32 4
  %mask = load i32, ptr %mask.at
  %above = icmp ult i32 %lanes, 32
  %shifted = shl i32 -1, %lanes
  %nowhere = select i1 %above, i32 %shifted, i32 0
  %exited = call i32 @lanes_with(i32 %base, i32 %lanes, i32 3)
  %unreachable = or i32 %nowhere, %exited
  %missing = and i32 %mask, %unreachable
  %lost = icmp ne i32 %missing, 0
  br i1 %lost, label %absent, label %gather
absent:
  %absent.site.at = getelementptr %thread, ptr %thread, i64 0, i32 2
  %absent.site = load i32, ptr %absent.site.at
  %absent.mask = zext i32 %mask to i64
  %absent.lanes = zext i32 %missing to i64
  call void @fail(i32 5, i32 %absent.site, i32 %index, i64 %absent.mask, i64 %absent.lanes)
  unreachable
gather:
  %arrived = call i32 @arrived(i32 %base, i32 %index, i32 %pending)
  %outside = xor i32 %arrived, -1
  %awaited = and i32 %mask, %outside
  %complete = icmp eq i32 %awaited, 0
  br i1 %complete, label %perform, label %after
perform:
  call void @perform(i32 %base, i32 %index, i32 %arrived)
  br label %after
after:
  %here = phi i1 [ false, %gather ], [ true, %perform ]
  %woken.now = or i1 %woken, %here
  %others = xor i32 %arrived, -1
  %pending.next = and i32 %pending, %others
  br label %head
done:
  ret i1 %woken
}

; The pending lanes with the mask of thread `first`. Fails when one of them is at another call.
define internal i32 @arrived(i32 %base, i32 %first, i32 %pending) {
entry:
  %mine = call ptr @thread_at(i32 %first)
  %my.site.at = getelementptr %thread, ptr %mine, i64 0, i32 2
  %my.site = load i32, ptr %my.site.at
  %my.mask.at = getelementptr %thread, ptr %mine, i64 0, i32 4
  %my.mask = load i32, ptr %my.mask.at
  br label %head
head:
  %left = phi i32 [ %pending, %entry ], [ %left.next, %after ]
  %bits = phi i32 [ 0, %entry ], [ %bits.now, %after ]
  %some = icmp ne i32 %left, 0
  br i1 %some, label %look, label %done
look:
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %below = sub i32 %left, 1
  %left.next = and i32 %left, %below
  %index = add i32 %base, %lane
  %thread = call ptr @thread_at(i32 %index)
  %mask.at = getelementptr %thread, ptr %thread, i64 0, i32 4
  %mask = load i32, ptr %mask.at
  %same = icmp eq i32 %mask, %my.mask
  br i1 %same, label %compare, label %after
compare:
  %site.at = getelementptr %thread, ptr %thread, i64 0, i32 2
  %site = load i32, ptr %site.at
  %agrees = icmp eq i32 %site, %my.site
  br i1 %agrees, label %after, label %diverged
diverged:
  %wide.mask = zext i32 %mask to i64
  call void @fail(i32 6, i32 %my.site, i32 %index, i64 %wide.mask, i64 0)
  unreachable
after:
  %one = phi i32 [ 0, %look ], [ 1, %compare ]
  %bit = shl i32 %one, %lane
  %bits.now = or i32 %bits, %bit
  br label %head
done:
  ret i32 %bits
}

declare i32 @llvm.umin.i32(i32, i32)
declare i32 @llvm.cttz.i32(i32, i1)
