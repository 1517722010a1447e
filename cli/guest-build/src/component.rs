//! From a core module to a component, in this process.

use std::error::Error;
use std::path::{Path, PathBuf};

use wasmparser::{Parser, Payload};
use wit_component::{ComponentEncoder, StringEncoding};
use wit_parser::Resolve;

/// A module could not become a component.
#[derive(Debug, thiserror::Error)]
pub enum ComponentError {
    /// The bytes are no WebAssembly.
    #[error("these {length} bytes are no WebAssembly module")]
    NotWasm {
        /// How many bytes there were.
        length: usize,
        /// What the parser found.
        source: wasmparser::BinaryReaderError,
    },
    /// The module does not say which interfaces it has.
    #[error(
        "the module carries no component type: in Rust it has to use the SDK, in other languages \
         the bindings that wit-bindgen makes of the interface"
    )]
    NoComponentType,
    /// The module was built against the first version of WASI.
    #[error("the module imports `{module}.{function}`: build it without WASI, or for WASI 0.2 or later")]
    Preview1 {
        /// The import's module.
        module: String,
        /// The import's name.
        function: String,
    },
    /// Imports or exports do not fit the interface that the module says it has.
    #[error("the module does not fit its own component type: {reason}")]
    Mismatch {
        /// What does not fit, from the outermost to the innermost cause.
        reason: String,
    },
    /// The interface definition has errors.
    #[error("the interface in {path} cannot be used: {reason}")]
    Interface {
        /// Folder or file of the definition.
        path: PathBuf,
        /// What is wrong, from the outermost to the innermost cause.
        reason: String,
    },
}

/// Makes a core module a component, and checks that it is valid. A component stays as it is, after the check.
///
/// # Errors
/// When the bytes are no module, or one whose interface is missing or does not fit.
pub fn componentize(module: &[u8]) -> Result<Vec<u8>, ComponentError> {
    let contents = Contents::of(module)?;
    if contents.is_component {
        wasmparser::Validator::new_with_features(wasmparser::WasmFeatures::all())
            .validate_all(module)
            .map_err(|error| ComponentError::Mismatch { reason: error.to_string() })?;
        return Ok(module.to_owned());
    }
    if let Some((module, function)) = contents.preview1_import {
        return Err(ComponentError::Preview1 { module, function });
    }
    if !contents.has_component_type {
        return Err(ComponentError::NoComponentType);
    }
    ComponentEncoder::default()
        .validate(true)
        .module(module)
        .and_then(|mut encoder| encoder.encode())
        .map_err(|error| ComponentError::Mismatch { reason: causes(error.as_ref()) })
}

/// Writes into a core module which world it implements, for compilers that leave it out. `wit` is the folder or
/// file with the definition.
///
/// # Errors
/// When the definition has errors or lacks the world.
pub fn embed_world(module: &[u8], wit: &Path, world: &str) -> Result<Vec<u8>, ComponentError> {
    let interface = |reason| ComponentError::Interface { path: wit.to_owned(), reason };
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(wit).map_err(|error| interface(causes(error.as_ref())))?;
    let world =
        resolve.select_world(&[package], Some(world)).map_err(|error| interface(causes(error.as_ref())))?;
    let mut module = module.to_owned();
    wit_component::embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)
        .map_err(|error| ComponentError::Mismatch { reason: causes(error.as_ref()) })?;
    Ok(module)
}

/// What decides how a module is treated.
#[derive(Default)]
struct Contents {
    is_component: bool,
    has_component_type: bool,
    preview1_import: Option<(String, String)>,
}

impl Contents {
    fn of(wasm: &[u8]) -> Result<Self, ComponentError> {
        let mut contents = Self { is_component: Parser::is_component(wasm), ..Self::default() };
        if contents.is_component {
            return Ok(contents);
        }
        for payload in Parser::new(0).parse_all(wasm) {
            payload
                .and_then(|payload| contents.see(&payload))
                .map_err(|source| ComponentError::NotWasm { length: wasm.len(), source })?;
        }
        Ok(contents)
    }

    fn see(&mut self, payload: &Payload<'_>) -> Result<(), wasmparser::BinaryReaderError> {
        match payload {
            Payload::ImportSection(imports) => {
                for import in imports.clone().into_imports() {
                    let import = import?;
                    if import.module.starts_with("wasi_snapshot_") {
                        self.preview1_import = Some((import.module.to_owned(), import.name.to_owned()));
                    }
                }
            }
            Payload::CustomSection(section) => {
                self.has_component_type |= section.name().starts_with("component-type");
            }
            _ => {}
        }
        Ok(())
    }
}

/// The whole chain in one line; the outermost alone often says no more than that something failed.
fn causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut inner = error.source();
    while let Some(cause) = inner {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        inner = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIT: &str =
        "package test:greeting; world greeter { import log: func(level: u32); export greet: func() -> u32; }";

    fn wit_file() -> tempfile::NamedTempFile {
        let file = tempfile::Builder::new().suffix(".wit").tempfile().expect("a file for the test");
        std::fs::write(file.path(), WIT).expect("writes");
        file
    }

    fn module(text: &str) -> Vec<u8> {
        wat::parse_str(text).expect("the test's text is right")
    }

    #[test]
    fn a_module_with_its_world_becomes_a_component_and_stays_one() {
        let wit = wit_file();
        let core = module(r#"(module (func (export "greet") (result i32) i32.const 7))"#);
        let embedded = embed_world(&core, wit.path(), "greeter").expect("embeds");
        let component = componentize(&embedded).expect("encodes");
        assert!(Parser::is_component(&component));
        assert_eq!(componentize(&component).expect("takes a component"), component);
    }

    #[test]
    fn a_missing_export_is_named() {
        let wit = wit_file();
        let embedded = embed_world(&module("(module)"), wit.path(), "greeter").expect("embeds");
        let message = componentize(&embedded).expect_err("exports nothing").to_string();
        assert!(message.contains("greet"), "{message}");
    }

    #[test]
    fn a_plain_module_is_told_what_it_lacks() {
        let error = componentize(&module("(module)")).expect_err("has no type");
        assert!(matches!(error, ComponentError::NoComponentType), "{error}");
    }

    #[test]
    fn wasi_preview_1_is_refused_by_name() {
        let core = module(r#"(module (import "wasi_snapshot_preview1" "fd_write" (func)))"#);
        let message = componentize(&core).expect_err("imports WASI").to_string();
        assert!(message.contains("`wasi_snapshot_preview1.fd_write`"), "{message}");
    }

    #[test]
    fn other_bytes_are_refused() {
        let error = componentize(b"no module").expect_err("is text");
        assert!(matches!(error, ComponentError::NotWasm { length: 9, .. }), "{error}");
        let mut broken = componentize(
            &embed_world(
                &module(r#"(module (func (export "greet") (result i32) i32.const 7))"#),
                wit_file().path(),
                "greeter",
            )
            .expect("embeds"),
        )
        .expect("encodes");
        broken.truncate(broken.len() - 5);
        assert!(componentize(&broken).is_err(), "a cut component passed");
    }

    #[test]
    fn an_unknown_world_is_named() {
        let wit = wit_file();
        let message =
            embed_world(&module("(module)"), wit.path(), "singer").expect_err("no such world").to_string();
        assert!(message.contains("singer"), "{message}");
    }
}
