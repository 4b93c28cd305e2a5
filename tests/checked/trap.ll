; Calls a kernel so that a fault ends the call and not the process.

%call = type { i64, i64, i64, i32, i32, [64 x i64] }
; the thread that is in the call, or 0; the address of the fault; what the processor says of it; the signal and its code;
; where the call goes on after a fault (a jmp_buf: 200 bytes on x86-64, 312 on AArch64)

@calls = global [64 x %call] zeroinitializer, align 16
@previous = global [65 x [19 x i64]] zeroinitializer, align 16
; by signal, the struct sigaction that was there before

declare i64 @pthread_self()
declare i32 @_setjmp(ptr) returns_twice
declare void @longjmp(ptr, i32) noreturn
declare i32 @sigaction(i32, ptr, ptr)

; 0 when the kernel ran to its end, 1 when it raised a signal.
define i32 @guarded(i64 %number, ptr %kernel, ptr %buffers, ptr %values, i64 %first, i64 %last) {
entry:
  %thread = getelementptr [64 x %call], ptr @calls, i64 0, i64 %number, i32 0
  %jump = getelementptr [64 x %call], ptr @calls, i64 0, i64 %number, i32 5
  %way = call i32 @_setjmp(ptr %jump) returns_twice
  %begins = icmp eq i32 %way, 0
  br i1 %begins, label %run, label %faulted
run:
  %self = call i64 @pthread_self()
  store volatile i64 %self, ptr %thread
  call void %kernel(ptr %buffers, ptr %values, i64 %first, i64 %last)
  store volatile i64 0, ptr %thread
  ret i32 0
faulted:
  store volatile i64 0, ptr %thread
  ret i32 1
}

; A handler with SA_SIGINFO. A fault outside every call is left to the handler that was there before: the action is set
; back, and the instruction that faulted does so again.
define void @caught(i32 %signal, ptr %info, ptr %context) {
entry:
  %self = call i64 @pthread_self()
  br label %look
look:
  %number = phi i64 [ 0, %entry ], [ %next, %other ]
  %thread = getelementptr [64 x %call], ptr @calls, i64 0, i64 %number, i32 0
  %owner = load volatile i64, ptr %thread
  %is_ours = icmp eq i64 %owner, %self
  br i1 %is_ours, label %ours, label %other
other:
  %next = add i64 %number, 1
  %more = icmp ult i64 %next, 64
  br i1 %more, label %look, label %foreign
ours:
  ; siginfo_t of 64-bit Linux: si_code at byte 8, si_addr at byte 16.
  %code_at = getelementptr i8, ptr %info, i64 8
  %code = load i32, ptr %code_at
  %address_at = getelementptr i8, ptr %info, i64 16
  %address = load i64, ptr %address_at
  ; ucontext_t of x86-64: gregs[REG_ERR] at byte 192, bit 1 of a page fault's error code is set for a store. Elsewhere
  ; the word means something else, and the caller does not look at it.
  %error_at = getelementptr i8, ptr %context, i64 192
  %error = load i64, ptr %error_at
  %address_to = getelementptr [64 x %call], ptr @calls, i64 0, i64 %number, i32 1
  store i64 %address, ptr %address_to
  %error_to = getelementptr [64 x %call], ptr @calls, i64 0, i64 %number, i32 2
  store i64 %error, ptr %error_to
  %signal_to = getelementptr [64 x %call], ptr @calls, i64 0, i64 %number, i32 3
  store i32 %signal, ptr %signal_to
  %code_to = getelementptr [64 x %call], ptr @calls, i64 0, i64 %number, i32 4
  store i32 %code, ptr %code_to
  %jump = getelementptr [64 x %call], ptr @calls, i64 0, i64 %number, i32 5
  call void @longjmp(ptr %jump, i32 1)
  unreachable
foreign:
  %which = zext i32 %signal to i64
  %before = getelementptr [65 x [19 x i64]], ptr @previous, i64 0, i64 %which
  %done = call i32 @sigaction(i32 %signal, ptr %before, ptr null)
  ret void
}
