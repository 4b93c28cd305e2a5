; A byte's cell, checked and brought up to date at each access.

define internal void @read_byte(ptr %row, i64 %address, i32 %kind, i32 %site) alwaysinline {
entry:
  %cell = call ptr @cell_of(ptr %row, i64 %address)
  %flags.at = getelementptr %row, ptr %row, i64 0, i32 3
  %flags = load i32, ptr %flags.at
  %numbers = call { i32, i32 } @numbers()
  %mine = extractvalue { i32, i32 } %numbers, 0
  %first = extractvalue { i32, i32 } %numbers, 1
  %info.at = getelementptr %cell, ptr %cell, i64 0, i32 5
  %info = load i32, ptr %info.at
  %atomic.bit = and i32 %kind, 2
  %atomic = icmp ne i32 %atomic.bit, 0
  %race = call i1 @races_with_writer(ptr %cell, i32 %mine, i32 %first, i32 %flags, i32 %info, i1 %atomic)
  br i1 %race, label %report, label %note
report:
  %writer = load i32, ptr %cell
  %other = sub i32 %writer, 1
  call void @fail(i32 11, i32 %site, i32 %other, i64 %address, i64 1)
  unreachable
note:
  %reader.at = getelementptr %cell, ptr %cell, i64 0, i32 1
  %reader = load i32, ptr %reader.at
  %read.at = getelementptr %cell, ptr %cell, i64 0, i32 3
  %read = load i32, ptr %read.at
  %now = load i32, ptr @interval
  %stamp = call i32 @stamp()
  %stamp.at = getelementptr %cell, ptr %cell, i64 0, i32 7
  store i32 %stamp, ptr %stamp.at
  %unread = icmp eq i32 %reader, 0
  %relevant = call i1 @unordered(i32 %reader, i32 %read, i32 %first, i32 %flags)
  %settled = xor i1 %relevant, true
  %fresh = or i1 %unread, %settled
  br i1 %fresh, label %first.reader, label %another
first.reader:
  store i32 %mine, ptr %reader.at
  store i32 %now, ptr %read.at
  %single = and i32 %info, -917505
  %atomic.mark = select i1 %atomic, i32 262144, i32 0
  %marked = or i32 %single, %atomic.mark
  store i32 %marked, ptr %info.at
  ret void
another:
  %is.other = icmp ne i32 %reader, %mine
  %several = select i1 %is.other, i32 131072, i32 0
  %my.index = sub i32 %mine, %first
  %its.index = sub i32 %reader, %first
  %differing = xor i32 %my.index, %its.index
  %other.warp = icmp uge i32 %differing, 32
  %warps = select i1 %other.warp, i32 524288, i32 0
  %plain = select i1 %atomic, i32 -1, i32 -262145
  %joined = or i32 %info, %several
  %joined.warps = or i32 %joined, %warps
  %kept = and i32 %joined.warps, %plain
  store i32 %kept, ptr %info.at
  ret void
}

define internal void @write_byte(ptr %row, i64 %address, i1 %changed, i32 %kind, i32 %site) alwaysinline {
entry:
  %cell = call ptr @cell_of(ptr %row, i64 %address)
  %flags.at = getelementptr %row, ptr %row, i64 0, i32 3
  %flags = load i32, ptr %flags.at
  %numbers = call { i32, i32 } @numbers()
  %mine = extractvalue { i32, i32 } %numbers, 0
  %first = extractvalue { i32, i32 } %numbers, 1
  %info.at = getelementptr %cell, ptr %cell, i64 0, i32 5
  %atomic.bit = and i32 %kind, 2
  %atomic = icmp ne i32 %atomic.bit, 0
  call void @count_store(ptr %cell, i32 %mine)
  %info = load i32, ptr %info.at
  ; Storing the value that is there already harms nobody, whoever does it.
  %matters = or i1 %changed, %atomic
  br i1 %matters, label %writer.check, label %done
writer.check:
  %writer.race = call i1 @races_with_writer(ptr %cell, i32 %mine, i32 %first, i32 %flags, i32 %info, i1 %atomic)
  br i1 %writer.race, label %report.writer, label %reader.check
report.writer:
  %writer = load i32, ptr %cell
  %other.writer = sub i32 %writer, 1
  call void @fail(i32 12, i32 %site, i32 %other.writer, i64 %address, i64 1)
  unreachable
reader.check:
  %reader.race = call i1 @races_with_readers(ptr %cell, i32 %mine, i32 %first, i32 %flags, i32 %info, i1 %atomic)
  br i1 %reader.race, label %report.reader, label %record
report.reader:
  %reader.at = getelementptr %cell, ptr %cell, i64 0, i32 1
  %reader = load i32, ptr %reader.at
  %other.reader = sub i32 %reader, 1
  call void @fail(i32 13, i32 %site, i32 %other.reader, i64 %address, i64 1)
  unreachable
record:
  %written.at = getelementptr %cell, ptr %cell, i64 0, i32 2
  %now = load i32, ptr @interval
  store i32 %mine, ptr %cell
  store i32 %now, ptr %written.at
  %stamp = call i32 @stamp()
  %stamp.at = getelementptr %cell, ptr %cell, i64 0, i32 6
  store i32 %stamp, ptr %stamp.at
  %cleared = and i32 %info, -65537
  %mark = select i1 %atomic, i32 65536, i32 0
  %marked = or i32 %cleared, %mark
  store i32 %marked, ptr %info.at
  ret void
done:
  ret void
}

; The count stays at its greatest value once there.
define internal void @count_store(ptr %cell, i32 %mine) alwaysinline {
entry:
  %storer.at = getelementptr %cell, ptr %cell, i64 0, i32 4
  %storer = load i32, ptr %storer.at
  %again = icmp eq i32 %storer, %mine
  br i1 %again, label %done, label %count
count:
  store i32 %mine, ptr %storer.at
  %info.at = getelementptr %cell, ptr %cell, i64 0, i32 5
  %info = load i32, ptr %info.at
  %low = and i32 %info, 65535
  %full = icmp eq i32 %low, 65535
  %step = select i1 %full, i32 0, i32 1
  %more = add i32 %info, %step
  store i32 %more, ptr %info.at
  br label %done
done:
  ret void
}
