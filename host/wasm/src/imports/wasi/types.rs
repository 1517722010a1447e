//! The types of WASI that cross the boundary.

use wasmtime::component::{ComponentType, Lower, Resource, ResourceType};

/// `wasi:clocks/wall-clock.datetime`.
#[derive(ComponentType, Lower)]
#[component(record)]
pub(super) struct Datetime {
    pub(super) seconds: u64,
    pub(super) nanoseconds: u32,
}

/// `wasi:io/streams.stream-error`.
#[derive(ComponentType, Lower)]
#[component(variant)]
pub(super) enum StreamError {
    #[component(name = "last-operation-failed")]
    #[expect(dead_code, reason = "nothing can fail here, but the type has the case")]
    LastOperationFailed(Resource<IoError>),
    #[component(name = "closed")]
    Closed,
}

/// What reading from an ended stream returns.
pub(super) fn closed<T>() -> Result<T, StreamError> {
    Err(StreamError::Closed)
}

/// `wasi:io/poll.pollable`; resources are names without content here.
pub(super) enum Pollable {}
/// `wasi:io/streams.input-stream`.
pub(super) enum InputStream {}
/// `wasi:io/streams.output-stream`.
pub(super) enum OutputStream {}
/// `wasi:io/error.error`.
pub(super) enum IoError {}
/// `wasi:cli/terminal-input.terminal-input`.
pub(super) enum TerminalInput {}
/// `wasi:cli/terminal-output.terminal-output`.
pub(super) enum TerminalOutput {}
/// `wasi:filesystem/types.descriptor`.
pub(super) enum Descriptor {}

/// The type of a resource, which several interfaces share under one name.
pub(super) fn resource_type(name: &str) -> ResourceType {
    match name {
        "pollable" => ResourceType::host::<Pollable>(),
        "input-stream" => ResourceType::host::<InputStream>(),
        "output-stream" => ResourceType::host::<OutputStream>(),
        "error" => ResourceType::host::<IoError>(),
        "terminal-input" => ResourceType::host::<TerminalInput>(),
        "terminal-output" => ResourceType::host::<TerminalOutput>(),
        "descriptor" => ResourceType::host::<Descriptor>(),
        _ => ResourceType::host::<()>(),
    }
}
