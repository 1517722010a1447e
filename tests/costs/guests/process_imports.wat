(import "millstream:function/state@0.1.0" "[static]value-state.open" (func $open_state (param i32 i32 i32)))
(import "millstream:function/state@0.1.0" "[method]value-state.read" (func $read (param i32 i32 i32 i32)))
(import "millstream:function/state@0.1.0" "[method]value-state.write"
  (func $write (param i32 i32 i32 i32 i32 i32 i32 i32)))
(import "millstream:function/timers@0.1.0" "set" (func $set (param i32 i32 i32 i32 i32)))
