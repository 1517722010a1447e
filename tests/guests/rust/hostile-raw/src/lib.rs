//! Functions that break the interface's rules, against the bare bindings, since the SDK keeps its users from it.
//!
//! Each has one nullable or plain column of its own making; what it does wrong stands in `Fault`.

mod bindings {
    #![allow(unsafe_code, reason = "generated from the WIT package")]
    wit_bindgen::generate!({
        path: "../../../../wit",
        inline: "
            package millstream:hostile;

            world hostile {
                import millstream:function/context@0.1.0;
                import millstream:function/state@0.1.0;
                import millstream:function/timers@0.1.0;
                export millstream:function/manifest@0.1.0;
                export millstream:function/map-function@0.1.0;
                export millstream:function/process-function@0.1.0;
            }
        ",
        world: "millstream:hostile/hostile",
        generate_all,
    });

    use super::Component;
    export!(Component with_types_in self);
}

mod fault;
mod manifest;
mod map;
mod process;

struct Component;
