//! Makes components of the hand-written core modules in `guests/`.

use std::{fmt::Write, fs};

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// A guest with one function, `f`.
pub(crate) struct Guest {
    world: &'static str,
    manifest: String,
    /// Imports, which have to come first in a module, and what else it has of its own.
    text: Vec<&'static str>,
}

/// A map function that returns the one column of this type that it reads.
pub(crate) fn map_of(data_type: &str) -> Guest {
    let column = format!(r#"[{{"name":"value","type":"{data_type}"}}]"#);
    let ports = format!(
        r#""inputs":[{{"name":"input","columns":{column}}}],
           "outputs":[{{"name":"output","columns":{column},"carry":"replace"}}]"#
    );
    Guest {
        world: "map-module",
        manifest: manifest("map", &ports),
        text: vec!["", include_str!("../guests/map.wat")],
    }
}

/// A process function that puts each row's number in its key's state and returns the former one.
pub(crate) fn process() -> Guest {
    process_with(include_str!("../guests/process_no_timers.wat"))
}

/// The same with a timer for each key, which returns the key's number.
pub(crate) fn process_with_timers() -> Guest {
    process_with(include_str!("../guests/process_timers.wat"))
}

fn process_with(timers: &'static str) -> Guest {
    let ports = r#""inputs":[{"name":"input","distribution":"keyed","columns":[{"name":"value","type":"int64"}]}],
        "outputs":[{"name":"output","columns":[{"name":"before","type":"int64","nullable":true}]}],
        "timers":["event"],
        "states":[{"name":"last","kind":"value","columns":[{"name":"value","type":"int64"}]}]"#;
    let imports = include_str!("../guests/process_imports.wat");
    let text = vec![imports, include_str!("../guests/process.wat"), timers];
    Guest { world: "process-module", manifest: manifest("process", ports), text }
}

/// An aggregate function that counts rows and sums their numbers.
pub(crate) fn aggregate() -> Guest {
    let made = r#"[{"name":"count","type":"int64"},{"name":"sum","type":"int64"}]"#;
    let ports = format!(
        r#""inputs":[{{"name":"input","columns":[{{"name":"value","type":"int64"}}]}}],
           "outputs":[{{"name":"output","columns":{made},"carry":"extend"}}],"accumulator":{{"columns":{made}}}"#
    );
    let text = vec!["", include_str!("../guests/aggregate.wat")];
    Guest { world: "aggregate-module", manifest: manifest("aggregate", &ports), text }
}

fn manifest(kind: &str, ports: &str) -> String {
    format!(
        r#"{{"manifest":1,"module":{{"name":"costs"}},"functions":[{{"name":"f","kind":"{kind}",{ports}}}]}}"#
    )
}

impl Guest {
    /// The component.
    pub(crate) fn component(&self) -> Vec<u8> {
        let mut core = wat::parse_str(self.module()).expect("the module's text is right");
        let wit = concat!(env!("CARGO_MANIFEST_DIR"), "/../../wit/function.wit");
        let wit = fs::read_to_string(wit).expect("the interface is in the repository");
        let mut resolve = Resolve::default();
        let package = resolve.push_str("function.wit", &wit).expect("the interface parses");
        let world = resolve.select_world(&[package], Some(self.world)).expect("a world of the interface");
        embed_component_metadata(&mut core, &resolve, world, StringEncoding::UTF8)
            .expect("it can be embedded");
        let mut encoder =
            ComponentEncoder::default().validate(true).module(&core).expect("a module of that world");
        encoder.encode().expect("a component")
    }

    /// The module's text with what all have in common put in: memory, an allocator that starts anew after each call,
    /// the manifest.
    fn module(&self) -> String {
        let (imports, own) = self.text.split_first().expect("both are given");
        let common = include_str!("../guests/common.wat");
        let length = escaped(&(self.manifest.len() as u32).to_le_bytes());
        let common =
            common.replace("{length}", &length).replace("{manifest}", &escaped(self.manifest.as_bytes()));
        format!("(module {imports} {common} {})", own.concat())
    }
}

fn escaped(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "\\{byte:02x}").expect("strings take everything");
        text
    })
}
