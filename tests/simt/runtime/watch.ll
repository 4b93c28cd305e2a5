; Every access of a watched launch: is it inside an allocation, aligned as promised, and free of races?
; A kernel calls simt_before ahead of an access and, when it writes, simt_after behind it.

; Bytes that a kernel may touch: 0 address, 1 bytes, 2 a cell per byte or null, 3 flags: 1 shared, 2 read-only.
%row = type { i64, i64, ptr, i32 }

; What is known of a byte in this launch. Threads are numbered from 1 through all blocks; 0 is nobody.
;   0 who last changed it   1 who read it since   2, 3 in which interval of its block each of them did
;   4 who last stored to it   5 how often a store came from another thread than the one before, in the low half;
;   0x10000: the change was atomic   0x20000: more than one thread read it   0x40000: the reads were atomic
;   0x80000: threads of more than one warp read it
;   6, 7 how many collectives the warp of each of them had completed
%cell = type { i32, i32, i32, i32, i32, i32, i32, i32 }

; The store under way: 0 row, 1 address, 2 bytes, 3 kind, 4 site. No thread suspends between before and after.
%pending = type { ptr, i64, i64, i32, i32 }

@rows = global ptr null
@row_count = global i64 0
; Stacks hold a thread's private memory, which no other can see.
@private_begin = global i64 0
@private_bytes = global i64 0
@last_row = global ptr null
@pending = global %pending zeroinitializer
; What the store replaces; accesses.py refuses larger ones.
@old_bytes = global [4096 x i8] zeroinitializer

; `kind`: 0 read, 1 write, plus 2 when it is atomic.
define void @simt_before(ptr %pointer, i64 %bytes, i64 %alignment, i32 %kind, i32 %site) {
entry:
  %address = ptrtoint ptr %pointer to i64
  %low = sub i64 %alignment, 1
  %astray = and i64 %address, %low
  %aligned = icmp eq i64 %astray, 0
  br i1 %aligned, label %private, label %misaligned
misaligned:
  call void @fail(i32 8, i32 %site, i32 -1, i64 %address, i64 %alignment)
  unreachable
private:
  %stacks = load i64, ptr @private_begin
  %stacks.bytes = load i64, ptr @private_bytes
  %depth = sub i64 %address, %stacks
  %own = icmp ult i64 %depth, %stacks.bytes
  br i1 %own, label %done, label %look
look:
  %row = call ptr @find_row(i64 %address, i64 %bytes)
  %found = icmp ne ptr %row, null
  br i1 %found, label %allowed, label %outside
outside:
  call void @fail(i32 9, i32 %site, i32 %kind, i64 %address, i64 %bytes)
  unreachable
allowed:
  %write = and i32 %kind, 1
  %writes = icmp ne i32 %write, 0
  br i1 %writes, label %writing, label %reading
writing:
  %flags.at = getelementptr %row, ptr %row, i64 0, i32 3
  %flags = load i32, ptr %flags.at
  %locked = and i32 %flags, 2
  %forbidden = icmp ne i32 %locked, 0
  br i1 %forbidden, label %read.only, label %keep
read.only:
  call void @fail(i32 10, i32 %site, i32 -1, i64 %address, i64 %bytes)
  unreachable
keep:
  call void @keep_old(ptr %row, i64 %address, i64 %bytes, i32 %kind, i32 %site)
  br label %done
reading:
  %cells.at = getelementptr %row, ptr %row, i64 0, i32 2
  %cells = load ptr, ptr %cells.at
  %untracked = icmp eq ptr %cells, null
  br i1 %untracked, label %done, label %each
each:
  %index = phi i64 [ 0, %reading ], [ %next, %each ]
  %byte = add i64 %address, %index
  call void @read_byte(ptr %row, i64 %byte, i32 %kind, i32 %site)
  %next = add i64 %index, 1
  %more = icmp ult i64 %next, %bytes
  br i1 %more, label %each, label %done
done:
  ret void
}

define internal ptr @find_row(i64 %address, i64 %bytes) {
entry:
  %last = load ptr, ptr @last_row
  %known = icmp ne ptr %last, null
  br i1 %known, label %again, label %search
again:
  %last.holds = call i1 @holds(ptr %last, i64 %address, i64 %bytes)
  br i1 %last.holds, label %same, label %search
same:
  ret ptr %last
search:
  %rows = load ptr, ptr @rows
  %count = load i64, ptr @row_count
  br label %head
head:
  %index = phi i64 [ 0, %search ], [ %next, %each ]
  %more = icmp ult i64 %index, %count
  br i1 %more, label %each, label %none
each:
  %row = getelementptr %row, ptr %rows, i64 %index
  %next = add i64 %index, 1
  %here = call i1 @holds(ptr %row, i64 %address, i64 %bytes)
  br i1 %here, label %found, label %head
found:
  store ptr %row, ptr @last_row
  ret ptr %row
none:
  ret ptr null
}

define internal i1 @holds(ptr %row, i64 %address, i64 %bytes) alwaysinline {
  %begin = load i64, ptr %row
  %size.at = getelementptr %row, ptr %row, i64 0, i32 1
  %size = load i64, ptr %size.at
  %offset = sub i64 %address, %begin
  %starts = icmp ult i64 %offset, %size
  %room = sub i64 %size, %offset
  %fits = icmp ule i64 %bytes, %room
  %both = and i1 %starts, %fits
  ret i1 %both
}

define internal void @keep_old(ptr %row, i64 %address, i64 %bytes, i32 %kind, i32 %site) {
  store ptr %row, ptr @pending
  store i64 %address, ptr getelementptr (%pending, ptr @pending, i64 0, i32 1)
  store i64 %bytes, ptr getelementptr (%pending, ptr @pending, i64 0, i32 2)
  store i32 %kind, ptr getelementptr (%pending, ptr @pending, i64 0, i32 3)
  store i32 %site, ptr getelementptr (%pending, ptr @pending, i64 0, i32 4)
  %source = inttoptr i64 %address to ptr
  call void @llvm.memcpy.p0.p0.i64(ptr @old_bytes, ptr %source, i64 %bytes, i1 false)
  ret void
}

define void @simt_after() {
entry:
  %row = load ptr, ptr @pending
  %none = icmp eq ptr %row, null
  br i1 %none, label %done, label %begin
begin:
  store ptr null, ptr @pending
  %address = load i64, ptr getelementptr (%pending, ptr @pending, i64 0, i32 1)
  %bytes = load i64, ptr getelementptr (%pending, ptr @pending, i64 0, i32 2)
  %kind = load i32, ptr getelementptr (%pending, ptr @pending, i64 0, i32 3)
  %site = load i32, ptr getelementptr (%pending, ptr @pending, i64 0, i32 4)
  br label %each
each:
  %offset = phi i64 [ 0, %begin ], [ %next, %each ]
  %target = add i64 %address, %offset
  %old.at = getelementptr [4096 x i8], ptr @old_bytes, i64 0, i64 %offset
  %old = load i8, ptr %old.at
  %new.at = inttoptr i64 %target to ptr
  %new = load i8, ptr %new.at
  %changed = icmp ne i8 %old, %new
  call void @write_byte(ptr %row, i64 %target, i1 %changed, i32 %kind, i32 %site)
  %next = add i64 %offset, 1
  %more = icmp ult i64 %next, %bytes
  br i1 %more, label %each, label %done
done:
  ret void
}
