; Conversions of half and bfloat that a host may lack the instruction for: compilers call them by these names.

; The bits, without the sign, of |x| rounded to nearest even in a format with `fraction` bits of fraction, the least
; exponent `least`, and `infinity` as the bits of infinity.
define internal i64 @narrowed(double %x, i64 %fraction, i64 %least, i64 %infinity) {
entry:
  %signed.bits = bitcast double %x to i64
  %bits = and i64 %signed.bits, 9223372036854775807
  %is.nan = icmp ugt i64 %bits, 9218868437227405312
  br i1 %is.nan, label %nan, label %finite
nan:
  %quiet.place = sub i64 %fraction, 1
  %quiet = shl i64 1, %quiet.place
  %not.a.number = or i64 %infinity, %quiet
  ret i64 %not.a.number
finite:
  %biased = lshr i64 %bits, 52
  %exponent.own = sub i64 %biased, 1023
  %is.small = icmp slt i64 %exponent.own, %least
  %exponent = select i1 %is.small, i64 %least, i64 %exponent.own
  %is.large = icmp sgt i64 %exponent.own, 128
  br i1 %is.large, label %overflow, label %round
round:
  ; Units in the last place: x * 2^(fraction - exponent), rounded by an addition that leaves no room for more bits.
  %scale.unbiased = sub i64 %fraction, %exponent
  %scale.biased = add i64 %scale.unbiased, 1023
  %scale.bits = shl i64 %scale.biased, 52
  %scale = bitcast i64 %scale.bits to double
  %magnitude = bitcast i64 %bits to double
  %units = fmul double %magnitude, %scale
  %rounded = fadd double %units, 4503599627370496.0
  %rounded.bits = bitcast double %rounded to i64
  %count = and i64 %rounded.bits, 4503599627370495
  ; The leading bit of a normal number adds one to the exponent, as does a carry out of the fraction.
  %step = sub i64 %exponent, %least
  %place = shl i64 %step, %fraction
  %result = add i64 %place, %count
  %fits = icmp ult i64 %result, %infinity
  br i1 %fits, label %done, label %overflow
overflow:
  ret i64 %infinity
done:
  ret i64 %result
}

define internal i16 @signed(double %x, i64 %magnitude) {
  %bits = bitcast double %x to i64
  %high = lshr i64 %bits, 48
  %sign = and i64 %high, 32768
  %all = or i64 %magnitude, %sign
  %word = trunc i64 %all to i16
  ret i16 %word
}

define half @__truncdfhf2(double %x) {
  %magnitude = call i64 @narrowed(double %x, i64 10, i64 -14, i64 31744)
  %bits = call i16 @signed(double %x, i64 %magnitude)
  %result = bitcast i16 %bits to half
  ret half %result
}

define half @__truncsfhf2(float %x) {
  %wide = fpext float %x to double
  %result = call half @__truncdfhf2(double %wide)
  ret half %result
}

define bfloat @__truncdfbf2(double %x) {
  %magnitude = call i64 @narrowed(double %x, i64 7, i64 -126, i64 32640)
  %bits = call i16 @signed(double %x, i64 %magnitude)
  %result = bitcast i16 %bits to bfloat
  ret bfloat %result
}

define bfloat @__truncsfbf2(float %x) {
  %wide = fpext float %x to double
  %result = call bfloat @__truncdfbf2(double %wide)
  ret bfloat %result
}

define float @__extendhfsf2(half %x) {
entry:
  %word = bitcast half %x to i16
  %bits = zext i16 %word to i32
  %magnitude = and i32 %bits, 32767
  %sign.low = and i32 %bits, 32768
  %sign = shl i32 %sign.low, 16
  %normal = icmp uge i32 %magnitude, 1024
  br i1 %normal, label %shift, label %subnormal
subnormal:
  %count = uitofp i32 %magnitude to float
  %small = fmul float %count, 0x3E70000000000000
  %small.bits = bitcast float %small to i32
  br label %done
shift:
  %placed = shl i32 %magnitude, 13
  %special = icmp uge i32 %magnitude, 31744
  ; 112 is the difference of the biases; the exponent of all ones needs it twice to stay one of all ones.
  %bias = select i1 %special, i32 1879048192, i32 939524096
  %large.bits = add i32 %placed, %bias
  br label %done
done:
  %result.magnitude = phi i32 [ %small.bits, %subnormal ], [ %large.bits, %shift ]
  %result.bits = or i32 %result.magnitude, %sign
  %result = bitcast i32 %result.bits to float
  ret float %result
}
