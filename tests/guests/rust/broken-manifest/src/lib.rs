//! A module whose manifest is not JSON, and which is fine otherwise.

mod bindings {
    #![allow(unsafe_code, reason = "generated from the WIT package")]
    wit_bindgen::generate!({ path: "../../../../wit", world: "map-module" });

    use super::Component;
    export!(Component with_types_in self);
}

use bindings::exports::millstream::function::{manifest, map_function};
use bindings::millstream::function::types::{Batch, Outcome};

struct Component;

impl manifest::Guest for Component {
    fn describe() -> String {
        "{\"manifest\": 1, \"module\": {".to_owned()
    }
}

impl map_function::Guest for Component {
    fn open(_function: String) -> Result<(), String> {
        Ok(())
    }

    fn apply(_input: Batch, _times: Option<Vec<i64>>) -> Result<Outcome, String> {
        Ok(Outcome { outputs: Vec::new(), rejected: Vec::new() })
    }

    fn close() {}
}
