;; A timer for each key, at most 1,024 ms behind the watermark.
(func $set_timers (param $keys i32) (param $watermark i64)
  (local $key i32)
  (loop $next
    (i64.store (i32.add (i32.const 0x30000) (i32.mul (local.get $key) (i32.const 8)))
      (i64.add (local.get $watermark) (i64.extend_i32_u (i32.add (i32.const 1)
        (i32.and (local.get $key) (i32.const 1023))))))
    (local.set $key (i32.add (local.get $key) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $key) (local.get $keys))))
  (call $set (i32.const 0) (i32.const 0x10000) (local.get $keys) (i32.const 0x30000) (local.get $keys)))
