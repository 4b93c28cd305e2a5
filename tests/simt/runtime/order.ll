; The order of a block's threads, drawn anew from the seed for every interval.

; xorshift64*: Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled" (2016).
define internal i32 @next_random() {
  %state = load i64, ptr @random
  %a.shifted = lshr i64 %state, 12
  %a = xor i64 %state, %a.shifted
  %b.shifted = shl i64 %a, 25
  %b = xor i64 %a, %b.shifted
  %c.shifted = lshr i64 %b, 27
  %c = xor i64 %b, %c.shifted
  store i64 %c, ptr @random
  %scrambled = mul i64 %c, 2685821657736338717
  %high = lshr i64 %scrambled, 32
  %word = trunc i64 %high to i32
  ret i32 %word
}

define internal void @shuffle_order(i32 %count) {
entry:
  br label %head
head:
  %left = phi i32 [ %count, %entry ], [ %last, %swap ]
  %some = icmp ugt i32 %left, 1
  br i1 %some, label %swap, label %done
swap:
  %last = sub i32 %left, 1
  %word = call i32 @next_random()
  %wide.word = zext i32 %word to i64
  %wide.left = zext i32 %left to i64
  %scaled = mul i64 %wide.word, %wide.left
  %chosen = lshr i64 %scaled, 32
  %wide.last = zext i32 %last to i64
  %chosen.at = getelementptr [1024 x i32], ptr @order, i64 0, i64 %chosen
  %last.at = getelementptr [1024 x i32], ptr @order, i64 0, i64 %wide.last
  %a = load i32, ptr %chosen.at
  %b = load i32, ptr %last.at
  store i32 %b, ptr %chosen.at
  store i32 %a, ptr %last.at
  br label %head
done:
  ret void
}

define internal i32 @in_order(i32 %turn) alwaysinline {
  %wide = zext i32 %turn to i64
  %at = getelementptr [1024 x i32], ptr @order, i64 0, i64 %wide
  %thread = load i32, ptr %at
  ret i32 %thread
}

define internal void @place(i32 %thread) alwaysinline {
  %wide = zext i32 %thread to i64
  %at = getelementptr [1024 x [3 x i32]], ptr @positions, i64 0, i64 %wide
  %position = load <2 x i32>, ptr %at, align 4
  %z.at = getelementptr i32, ptr %at, i64 2
  %z = load i32, ptr %z.at
  store <2 x i32> %position, ptr @registers, align 16
  store i32 %z, ptr getelementptr ([13 x i32], ptr @registers, i64 0, i64 2)
  store i32 %thread, ptr getelementptr ([13 x i32], ptr @registers, i64 0, i64 12)
  ret void
}
