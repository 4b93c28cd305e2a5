; Shared memory before and after a block. A poisoned byte is 0xFE at an even address and 0xFF at an odd one: a NaN in
; every floating-point type, and no number that a kernel is likely to write.

define internal i64 @border() alwaysinline {
  ret i64 256
}

define internal void @poison_shared(ptr %launch) {
entry:
  %count.at = getelementptr %launch, ptr %launch, i64 0, i32 8
  %count = load i64, ptr %count.at
  %arrays.at = getelementptr %launch, ptr %launch, i64 0, i32 7
  %arrays = load ptr, ptr %arrays.at
  %border = call i64 @border()
  %borders = mul i64 %border, 2
  br label %head
head:
  %index = phi i64 [ 0, %entry ], [ %next, %fill.done ]
  %more = icmp ult i64 %index, %count
  br i1 %more, label %body, label %done
body:
  %array = getelementptr %shared, ptr %arrays, i64 %index
  %address = load ptr, ptr %array
  %bytes.at = getelementptr %shared, ptr %array, i64 0, i32 1
  %bytes = load i64, ptr %bytes.at
  %back = sub i64 0, %border
  %begin = getelementptr i8, ptr %address, i64 %back
  %whole = add i64 %bytes, %borders
  %rounded = add i64 %whole, 1
  %halves = lshr i64 %rounded, 1
  br label %fill
fill:
  %half = phi i64 [ 0, %body ], [ %half.next, %fill ]
  %half.at = getelementptr i16, ptr %begin, i64 %half
  store i16 -2, ptr %half.at
  %half.next = add i64 %half, 1
  %half.more = icmp ult i64 %half.next, %halves
  br i1 %half.more, label %fill, label %fill.done
fill.done:
  %next = add i64 %index, 1
  br label %head
done:
  ret void
}

define internal void @check_shared(ptr %launch) {
entry:
  %count.at = getelementptr %launch, ptr %launch, i64 0, i32 8
  %count = load i64, ptr %count.at
  %arrays.at = getelementptr %launch, ptr %launch, i64 0, i32 7
  %arrays = load ptr, ptr %arrays.at
  %border = call i64 @border()
  br label %head
head:
  %index = phi i64 [ 0, %entry ], [ %next, %good ]
  %more = icmp ult i64 %index, %count
  br i1 %more, label %body, label %done
body:
  %array = getelementptr %shared, ptr %arrays, i64 %index
  %address = load ptr, ptr %array
  %bytes.at = getelementptr %shared, ptr %array, i64 0, i32 1
  %bytes = load i64, ptr %bytes.at
  %back = sub i64 0, %border
  %before = getelementptr i8, ptr %address, i64 %back
  %after = getelementptr i8, ptr %address, i64 %bytes
  %before.bad = call i8 @damage(ptr %before)
  %after.bad = call i8 @damage(ptr %after)
  %bad = or i8 %before.bad, %after.bad
  %damaged = icmp ne i8 %bad, 0
  br i1 %damaged, label %broken, label %good
broken:
  %number = ptrtoint ptr %address to i64
  call void @fail(i32 2, i32 -1, i32 -1, i64 %number, i64 %bytes)
  unreachable
good:
  %next = add i64 %index, 1
  br label %head
done:
  ret void
}

; Zero when the border that begins at `begin` still holds the poison.
define internal i8 @damage(ptr %begin) {
entry:
  %number = ptrtoint ptr %begin to i64
  %low = trunc i64 %number to i8
  %border = call i64 @border()
  br label %each
each:
  %index = phi i64 [ 0, %entry ], [ %next, %each ]
  %sum = phi i8 [ 0, %entry ], [ %together, %each ]
  %short = trunc i64 %index to i8
  %place = add i8 %low, %short
  %odd = and i8 %place, 1
  %poison = or i8 %odd, -2
  %at = getelementptr i8, ptr %begin, i64 %index
  %byte = load i8, ptr %at
  %differs = xor i8 %byte, %poison
  %together = or i8 %sum, %differs
  %next = add i64 %index, 1
  %more = icmp ult i64 %next, %border
  br i1 %more, label %each, label %done
done:
  ret i8 %together
}
