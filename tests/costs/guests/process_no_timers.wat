;; No timers.
(func $set_timers (param i32 i64))
