//! The manifest: every function reads the column `n` and makes the column `made`.

use crate::Component;
use crate::bindings::exports::millstream::function::manifest::Guest;
use crate::fault::Fault;

impl Guest for Component {
    fn describe() -> String {
        let functions: Vec<_> = Fault::ALL.iter().map(|(name, fault)| function(name, *fault)).collect();
        format!(
            r#"{{"manifest":1,"module":{{"name":"hostile-raw","version":"0.1.0","doc":"Breaks the rules","sdk":"none"}},"functions":[{}]}}"#,
            functions.join(",")
        )
    }
}

fn function(name: &str, fault: Fault) -> String {
    let keyed = fault.needs_keys();
    let (kind, distribution) = if keyed { ("process", "keyed") } else { ("map", "any") };
    let state = r#"{"name":"count","kind":"value","columns":[{"name":"value","type":"int64","nullable":false}],"version":1}"#;
    let states = if keyed { state } else { "" };
    let made = if fault.has_text() { "utf8" } else { "int64" };
    let timers = if keyed { r#""event""# } else { "" };
    format!(
        r#"{{"name":"{name}","kind":"{kind}","doc":"","parameters":[],"inputs":[{{"name":"input","distribution":"{distribution}","columns":[{{"name":"n","type":"int64","nullable":false}}],"times":false}}],"key":[],"outputs":[{{"name":"output","columns":[{{"name":"made","type":"{made}","nullable":false}}],"carry":"extend"}}],"states":[{states}],"timers":[{timers}],"lifecycle":[]}}"#
    )
}
