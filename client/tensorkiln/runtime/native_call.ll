; One call of a program: native_call.py lays out what is read here, and says what it is. The first argument is a `bytes`
; object with the numbers that depend on the sizes of the call, the others are its arrays. Where `self` says so, its results
; are behind these, None for one that is to be made here.
;
; The function is one of CPython's METH_FASTCALL. It gives None where the arrays are not what it knows, or another
; thread is in it: nothing has run then.

%Place = type { ptr, i64 }
%Array = type { ptr, i64, ptr, i64, i64, ptr }
%Launch = type { ptr, ptr, ptr, i64 }
%Patch = type { ptr, i64, i64 }
%Call = type { i64, ptr, i64, ptr, i64, ptr, i64, ptr, i64, ptr }

; An entry of the table of what is called and compared with: `_api` in native_call.py has the order.
define internal ptr @api(ptr %api, i64 %which) alwaysinline {
  %place = getelementptr ptr, ptr %api, i64 %which
  %function = load ptr, ptr %place
  ret ptr %function
}

; Write where an array begins, and what is added to that, to the places that kernels read it from.
define internal void @aim(ptr %array, i64 %begin) {
entry:
  %count.at = getelementptr %Array, ptr %array, i32 0, i32 4
  %count = load i64, ptr %count.at
  %places.at = getelementptr %Array, ptr %array, i32 0, i32 5
  %places = load ptr, ptr %places.at
  br label %next
next:
  %number = phi i64 [ 0, %entry ], [ %number.after, %body ]
  %more = icmp ult i64 %number, %count
  br i1 %more, label %body, label %done
body:
  %place = getelementptr %Place, ptr %places, i64 %number
  %slot = load ptr, ptr %place
  %offset.at = getelementptr %Place, ptr %place, i32 0, i32 1
  %offset = load i64, ptr %offset.at
  %address = add i64 %begin, %offset
  store i64 %address, ptr %slot
  %number.after = add i64 %number, 1
  br label %next
done:
  ret void
}

; Whether an object is an array as it must be: of numpy.ndarray itself, with the very dtype, contiguous and aligned.
; The fields are those of PyObject and PyArrayObject_fields.
define internal i1 @fits(ptr %array, ptr %object, ptr %ndarray) {
entry:
  %type.at = getelementptr i8, ptr %object, i64 8
  %type = load ptr, ptr %type.at
  %is.array = icmp eq ptr %type, %ndarray
  br i1 %is.array, label %look, label %differs
look:
  %dtype.at = getelementptr i8, ptr %object, i64 56
  %dtype = load ptr, ptr %dtype.at
  %wanted.dtype = load ptr, ptr %array
  %is.dtype = icmp eq ptr %dtype, %wanted.dtype
  %rank.at = getelementptr i8, ptr %object, i64 24
  %rank.32 = load i32, ptr %rank.at
  %rank = sext i32 %rank.32 to i64
  %wanted.rank.at = getelementptr %Array, ptr %array, i32 0, i32 1
  %wanted.rank = load i64, ptr %wanted.rank.at
  %is.rank = icmp eq i64 %rank, %wanted.rank
  %flags.at = getelementptr i8, ptr %object, i64 64
  %flags = load i32, ptr %flags.at
  %kept = and i32 %flags, 257 ; NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED
  %is.plain = icmp eq i32 %kept, 257
  %is.like = and i1 %is.dtype, %is.rank
  %is.so.far = and i1 %is.like, %is.plain
  br i1 %is.so.far, label %shapes, label %differs
shapes:
  %dims.at = getelementptr i8, ptr %object, i64 32
  %dims = load ptr, ptr %dims.at
  %wanted.dims.at = getelementptr %Array, ptr %array, i32 0, i32 2
  %wanted.dims = load ptr, ptr %wanted.dims.at
  br label %next
next:
  %axis = phi i64 [ 0, %shapes ], [ %axis.after, %body ]
  %more = icmp ult i64 %axis, %rank
  br i1 %more, label %body, label %same
body:
  %dim.at = getelementptr i64, ptr %dims, i64 %axis
  %dim = load i64, ptr %dim.at
  %wanted.dim.at = getelementptr i64, ptr %wanted.dims, i64 %axis
  %wanted.dim = load i64, ptr %wanted.dim.at
  %axis.after = add i64 %axis, 1
  %is.dim = icmp eq i64 %dim, %wanted.dim
  br i1 %is.dim, label %next, label %differs
same:
  ret i1 true
differs:
  ret i1 false
}

; A new array in bytes of its own, aligned to a cache line, as an item of a tuple; false with an exception set.
define internal i1 @make(ptr %api, ptr %array, ptr %results, i64 %position) {
entry:
  %ndarray = call ptr @api(ptr %api, i64 0)
  %byte = call ptr @api(ptr %api, i64 1)
  %new = call ptr @api(ptr %api, i64 2)
  %set.base = call ptr @api(ptr %api, i64 3)
  %incref = call ptr @api(ptr %api, i64 4)
  %decref = call ptr @api(ptr %api, i64 5)
  %set.item = call ptr @api(ptr %api, i64 6)
  %dtype = load ptr, ptr %array
  %rank.at = getelementptr %Array, ptr %array, i32 0, i32 1
  %rank = load i64, ptr %rank.at
  %rank.32 = trunc i64 %rank to i32
  %dims.at = getelementptr %Array, ptr %array, i32 0, i32 2
  %dims = load ptr, ptr %dims.at
  %taken = getelementptr %Array, ptr %array, i32 0, i32 3
  call void %incref(ptr %byte)
  %bytes = call ptr %new(ptr %ndarray, ptr %byte, i32 1, ptr %taken, ptr null, ptr null, i32 0, ptr null)
  %no.bytes = icmp eq ptr %bytes, null
  br i1 %no.bytes, label %failed, label %view
view:
  %data.at = getelementptr i8, ptr %bytes, i64 16
  %data = load i64, ptr %data.at
  %behind = add i64 %data, 63
  %begin = and i64 %behind, -64
  %begin.pointer = inttoptr i64 %begin to ptr
  call void %incref(ptr %dtype)
  ; NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED | NPY_ARRAY_WRITEABLE
  %made = call ptr %new(ptr %ndarray, ptr %dtype, i32 %rank.32, ptr %dims, ptr null, ptr %begin.pointer, i32 1281, ptr null)
  %none.made = icmp eq ptr %made, null
  br i1 %none.made, label %drop, label %hold
drop:
  call void %decref(ptr %bytes)
  br label %failed
hold:
  %status = call i32 %set.base(ptr %made, ptr %bytes)
  %is.held = icmp eq i32 %status, 0
  br i1 %is.held, label %keep, label %lose
lose:
  call void %decref(ptr %made)
  br label %failed
keep:
  %kept = call i32 %set.item(ptr %results, i64 %position, ptr %made)
  call void @aim(ptr %array, i64 %begin)
  ret i1 true
failed:
  ret i1 false
}

; Write the numbers that depend on the sizes of a call to where they are read.
define internal void @patch(ptr %call, ptr %numbers) {
entry:
  %patches.at = getelementptr %Call, ptr %call, i32 0, i32 7
  %patches = load ptr, ptr %patches.at
  %count.at = getelementptr %Call, ptr %call, i32 0, i32 8
  %count = load i64, ptr %count.at
  br label %next
next:
  %number = phi i64 [ 0, %entry ], [ %number.after, %body ]
  %more = icmp ult i64 %number, %count
  br i1 %more, label %body, label %done
body:
  %patch = getelementptr %Patch, ptr %patches, i64 %number
  %place = load ptr, ptr %patch
  %which.at = getelementptr %Patch, ptr %patch, i32 0, i32 1
  %which = load i64, ptr %which.at
  %value.at = getelementptr i64, ptr %numbers, i64 %which
  %base = load i64, ptr %value.at, align 1
  %plus.at = getelementptr %Patch, ptr %patch, i32 0, i32 2
  %plus = load i64, ptr %plus.at
  %value = add i64 %base, %plus
  store i64 %value, ptr %place
  %number.after = add i64 %number, 1
  br label %next
done:
  ret void
}

define ptr @call(ptr %self, ptr %given, i64 %count) {
entry:
  ; What `self` holds begins where the bytes of a `bytes` object do: the address of what describes the call, and whether
  ; results are given.
  %address.at = getelementptr i8, ptr %self, i64 32
  %call = load ptr, ptr %address.at
  %api.at = getelementptr %Call, ptr %call, i32 0, i32 9
  %api = load ptr, ptr %api.at
  %ndarray = call ptr @api(ptr %api, i64 0)
  %incref = call ptr @api(ptr %api, i64 4)
  %decref = call ptr @api(ptr %api, i64 5)
  %busy = load i64, ptr %call
  %is.free = icmp eq i64 %busy, 0
  %inputs.at = getelementptr %Call, ptr %call, i32 0, i32 1
  %inputs = load ptr, ptr %inputs.at
  %input.count.at = getelementptr %Call, ptr %call, i32 0, i32 2
  %input.count = load i64, ptr %input.count.at
  %output.count.at = getelementptr %Call, ptr %call, i32 0, i32 4
  %output.count = load i64, ptr %output.count.at
  %given.at = getelementptr i8, ptr %self, i64 40
  %given.word = load i64, ptr %given.at
  %is.given = icmp ne i64 %given.word, 0
  %given.count = select i1 %is.given, i64 %output.count, i64 0
  %array.count = add i64 %input.count, %given.count
  %wanted.count = add i64 %array.count, 1
  %is.count = icmp eq i64 %count, %wanted.count
  %is.so.far = and i1 %is.free, %is.count
  br i1 %is.so.far, label %enter, label %unknown

enter:
  ; From here on: what is made may collect garbage, whose finalizers may call the program again.
  store i64 1, ptr %call
  %numbers = load ptr, ptr %given
  %numbers.at = getelementptr i8, ptr %numbers, i64 32
  call void @patch(ptr %call, ptr %numbers.at)
  %arrays.given = getelementptr ptr, ptr %given, i64 1
  br label %inputs.next
inputs.next:
  %input = phi i64 [ 0, %enter ], [ %input.after, %input.fits ]
  %more.inputs = icmp ult i64 %input, %input.count
  br i1 %more.inputs, label %input.look, label %outputs
input.look:
  %array = getelementptr %Array, ptr %inputs, i64 %input
  %object.at = getelementptr ptr, ptr %arrays.given, i64 %input
  %object = load ptr, ptr %object.at
  %fits = call i1 @fits(ptr %array, ptr %object, ptr %ndarray)
  br i1 %fits, label %input.fits, label %differs
input.fits:
  %data.at = getelementptr i8, ptr %object, i64 16
  %data = load i64, ptr %data.at
  call void @aim(ptr %array, i64 %data)
  %input.after = add i64 %input, 1
  br label %inputs.next

differs:
  store i64 0, ptr %call
  br label %unknown
unknown:
  %none = call ptr @api(ptr %api, i64 7)
  call void %incref(ptr %none)
  ret ptr %none

outputs:
  %results.at = getelementptr %Call, ptr %call, i32 0, i32 3
  %arrays = load ptr, ptr %results.at
  %results.given = getelementptr ptr, ptr %arrays.given, i64 %input.count
  %nothing = call ptr @api(ptr %api, i64 7)
  %set.item = call ptr @api(ptr %api, i64 6)
  %new.tuple = call ptr @api(ptr %api, i64 8)
  %results = call ptr %new.tuple(i64 %output.count)
  %no.results = icmp eq ptr %results, null
  br i1 %no.results, label %failed, label %outputs.next
outputs.next:
  %output = phi i64 [ 0, %outputs ], [ %output.after, %output.made ]
  %more.outputs = icmp ult i64 %output, %output.count
  %result = getelementptr %Array, ptr %arrays, i64 %output
  br i1 %more.outputs, label %output.any, label %run
output.any:
  br i1 %is.given, label %output.look, label %output.make
output.look:
  %result.at = getelementptr ptr, ptr %results.given, i64 %output
  %result.given = load ptr, ptr %result.at
  %is.none = icmp eq ptr %result.given, %nothing
  br i1 %is.none, label %output.make, label %output.take
output.take:
  call void %incref(ptr %result.given)
  %taken = call i32 %set.item(ptr %results, i64 %output, ptr %result.given)
  %result.data.at = getelementptr i8, ptr %result.given, i64 16
  %result.data = load i64, ptr %result.data.at
  call void @aim(ptr %result, i64 %result.data)
  br label %output.made
output.make:
  %is.made = call i1 @make(ptr %api, ptr %result, ptr %results, i64 %output)
  br i1 %is.made, label %output.made, label %drop
output.made:
  %output.after = add i64 %output, 1
  br label %outputs.next
drop:
  call void %decref(ptr %results)
  br label %failed
failed:
  store i64 0, ptr %call
  ret ptr null

run:
  %launches.at = getelementptr %Call, ptr %call, i32 0, i32 5
  %launches = load ptr, ptr %launches.at
  %launch.count.at = getelementptr %Call, ptr %call, i32 0, i32 6
  %launch.count = load i64, ptr %launch.count.at
  %save = call ptr @api(ptr %api, i64 9)
  %thread = call ptr %save()
  br label %launches.next
launches.next:
  %number = phi i64 [ 0, %run ], [ %number.after, %launched ]
  %more.launches = icmp ult i64 %number, %launch.count
  br i1 %more.launches, label %look, label %done
look:
  %kernel = getelementptr %Launch, ptr %launches, i64 %number
  %groups.at = getelementptr %Launch, ptr %kernel, i32 0, i32 3
  %groups = load i64, ptr %groups.at
  %is.work = icmp ne i64 %groups, 0
  br i1 %is.work, label %launch, label %launched
launch:
  %function = load ptr, ptr %kernel
  %pointers.at = getelementptr %Launch, ptr %kernel, i32 0, i32 1
  %pointers = load ptr, ptr %pointers.at
  %values.at = getelementptr %Launch, ptr %kernel, i32 0, i32 2
  %values = load ptr, ptr %values.at
  call void %function(ptr %pointers, ptr %values, i64 0, i64 %groups)
  br label %launched
launched:
  %number.after = add i64 %number, 1
  br label %launches.next
done:
  %restore = call ptr @api(ptr %api, i64 10)
  call void %restore(ptr %thread)
  store i64 0, ptr %call
  ret ptr %results
}
