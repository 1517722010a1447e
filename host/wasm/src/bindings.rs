//! What the host serves, generated from `wit/`: the imports and the types that cross by value. What the host calls
//! stands in `exports.rs`, with parameters that borrow (`boundary/params.rs`), so that a column goes from an Arrow
//! buffer to the guest's memory in one copy.

#![allow(missing_docs, unreachable_pub, clippy::all, reason = "generated")]

wasmtime::component::bindgen!({
    path: "../../wit",
    inline: "
        package millstream:host;

        world serves {
            import millstream:function/context@0.1.0;
            import millstream:function/state@0.1.0;
            import millstream:function/operator-state@0.1.0;
            import millstream:function/timers@0.1.0;
        }
    ",
    imports: { default: trappable },
});

pub(crate) use self::millstream::function::{context, operator_state, state, timers, types};
