//! WASI 0.2 for components that import it: clocks and random numbers that are the call's, standard output and error in
//! the log, the variables that the job grants, and of the rest the shape without the content: no arguments, no input,
//! no files.
//!
//! A language's runtime links far more than it calls. So functions of a served interface that are not here can be
//! linked, and trap with their name when they are called; an interface that is not served is refused when the module
//! is compiled.

mod lines;
mod types;

use wasmtime::{
    StoreContextMut,
    component::{
        Component, ComponentNamedList, Lift, Linker, LinkerInstance, Lower, Resource, types::ComponentItem,
    },
};

pub(super) use self::lines::Printed;
use self::{
    lines::{STDERR, STDOUT},
    types::{
        Datetime, Descriptor, InputStream, OutputStream, Pollable, StreamError, TerminalInput,
        TerminalOutput, closed, resource_type,
    },
};
use super::Guest;
use crate::stop::Stop;

/// Whether an interface is served, under any patch release.
pub(super) fn serves(import: &str) -> bool {
    interface_of(import).is_some_and(|interface| SERVED.contains(&interface))
}

/// Defines what a component imports of WASI, under the names by which it does.
pub(super) fn add_to_linker(linker: &mut Linker<Guest>, component: &Component) -> wasmtime::Result<()> {
    let engine = component.engine();
    for (import, item) in component.component_type().imports(engine) {
        let (Some(interface), ComponentItem::ComponentInstance(imported)) = (interface_of(import), item.ty)
        else {
            continue;
        };
        let mut to = Definitions { instance: linker.instance(import)?, interface };
        for (name, item) in imported.exports(engine) {
            match item.ty {
                ComponentItem::Resource(_) => {
                    to.instance.resource(name, resource_type(name), |_, _| Ok(()))?
                }
                ComponentItem::ComponentFunc(_) => to.function(name)?,
                _ => {}
            }
        }
    }
    Ok(())
}

/// `wasi:io/poll@0.2.3` as `io/poll`.
fn interface_of(import: &str) -> Option<&str> {
    let (interface, version) = import.strip_prefix("wasi:")?.split_once('@')?;
    version.starts_with("0.2.").then_some(interface)
}

/// Where the functions of one interface are defined.
struct Definitions<'a, 'b> {
    instance: LinkerInstance<'a, Guest>,
    interface: &'b str,
}

impl Definitions<'_, '_> {
    fn function(&mut self, name: &str) -> wasmtime::Result<()> {
        match self.interface {
            "cli/environment" => self.environment(name),
            "cli/exit" => self.exit(name),
            "cli/stdin" | "cli/stdout" | "cli/stderr" => self.standard_stream(name),
            "cli/terminal-stdin" => self.always(name, || (None::<Resource<TerminalInput>>,)),
            "cli/terminal-stdout" | "cli/terminal-stderr" => {
                self.always(name, || (None::<Resource<TerminalOutput>>,))
            }
            "clocks/wall-clock" => self.wall_clock(name),
            "clocks/monotonic-clock" => self.monotonic_clock(name),
            "random/random" | "random/insecure" | "random/insecure-seed" => self.random(name),
            "io/poll" => self.poll(name),
            "io/streams" => self.stream(name),
            "filesystem/preopens" => self.always(name, || (Vec::<(Resource<Descriptor>, String)>::new(),)),
            _ => self.trap(name),
        }
    }

    /// The environment holds what the job grants, and nothing of the host's own.
    fn environment(&mut self, name: &str) -> wasmtime::Result<()> {
        match name {
            "get-environment" => self.with(name, |guest, ()| Ok((guest.environment.to_vec(),))),
            "get-arguments" => self.always(name, || (Vec::<String>::new(),)),
            "initial-cwd" => self.always(name, || (None::<String>,)),
            _ => self.trap(name),
        }
    }

    fn exit(&mut self, name: &str) -> wasmtime::Result<()> {
        match name {
            "exit" => self.with(name, |_, (status,): (Result<(), ()>,)| -> Result<(), Stop> {
                Err(exited(if status.is_ok() { "success" } else { "failure" }))
            }),
            "exit-with-code" => self
                .with(name, |_, (code,): (u8,)| -> Result<(), Stop> { Err(exited(&format!("code {code}"))) }),
            _ => self.trap(name),
        }
    }

    fn standard_stream(&mut self, name: &str) -> wasmtime::Result<()> {
        match name {
            "get-stdin" => self.always(name, || (Resource::<InputStream>::new_own(0),)),
            "get-stdout" => self.always(name, || (Resource::<OutputStream>::new_own(STDOUT),)),
            "get-stderr" => self.always(name, || (Resource::<OutputStream>::new_own(STDERR),)),
            _ => self.trap(name),
        }
    }

    /// Time stands still within a call, as it does for `context.now`.
    fn wall_clock(&mut self, name: &str) -> wasmtime::Result<()> {
        match name {
            "now" => self.with(name, |guest, ()| {
                let now = guest.wall_milliseconds();
                Ok((Datetime { seconds: now / 1000, nanoseconds: (now % 1000) as u32 * NANOSECONDS },))
            }),
            "resolution" => self.always(name, || (Datetime { seconds: 0, nanoseconds: NANOSECONDS },)),
            _ => self.trap(name),
        }
    }

    fn monotonic_clock(&mut self, name: &str) -> wasmtime::Result<()> {
        match name {
            "now" => self.with(name, |guest, ()| Ok((guest.monotonic_nanoseconds(),))),
            "resolution" => self.always(name, || (u64::from(NANOSECONDS),)),
            "subscribe-instant" | "subscribe-duration" => {
                self.with(name, |_, (_when,): (u64,)| Ok((Resource::<Pollable>::new_own(0),)))
            }
            _ => self.trap(name),
        }
    }

    /// All from the seed of the call, so that a replay draws the same.
    fn random(&mut self, name: &str) -> wasmtime::Result<()> {
        match name {
            "get-random-bytes" | "get-insecure-random-bytes" => self.with(name, |guest, (count,): (u64,)| {
                let count = usize::try_from(count).unwrap_or(usize::MAX);
                guest.take_bytes(count)?;
                let words = (0..count.div_ceil(8)).flat_map(|_| guest.random.next().to_le_bytes());
                Ok((words.take(count).collect::<Vec<u8>>(),))
            }),
            "get-random-u64" | "get-insecure-random-u64" => {
                self.with(name, |guest, ()| Ok((guest.random.next(),)))
            }
            "insecure-seed" => self.with(name, |guest, ()| Ok(((guest.random.next(), guest.random.next()),))),
            _ => self.trap(name),
        }
    }

    /// Everything is always ready: there is nothing outside that could be waited for, and sleeping would hold up all
    /// other subtasks of the slot.
    fn poll(&mut self, name: &str) -> wasmtime::Result<()> {
        match name {
            "[method]pollable.ready" => self.with(name, |_, (_pollable,): (Resource<Pollable>,)| Ok((true,))),
            "[method]pollable.block" => self.with(name, |_, (_pollable,): (Resource<Pollable>,)| Ok(())),
            "poll" => self.with(name, |_, (pollables,): (Vec<Resource<Pollable>>,)| {
                Ok(((0..pollables.len() as u32).collect::<Vec<u32>>(),))
            }),
            _ => self.trap(name),
        }
    }

    /// Input has ended before it starts. Output goes to the log, a line at a time.
    fn stream(&mut self, name: &str) -> wasmtime::Result<()> {
        let Some((resource, method)) = name.strip_prefix("[method]").and_then(|n| n.split_once('.')) else {
            return self.trap(name);
        };
        match (resource, method) {
            ("input-stream", "read" | "blocking-read") => self
                .with(name, |_, (_stream, _length): (Resource<InputStream>, u64)| Ok((closed::<Vec<u8>>(),))),
            ("input-stream", "skip" | "blocking-skip") => {
                self.with(name, |_, (_stream, _length): (Resource<InputStream>, u64)| Ok((closed::<u64>(),)))
            }
            ("input-stream", "subscribe") => self.with(name, |_, (_stream,): (Resource<InputStream>,)| {
                Ok((Resource::<Pollable>::new_own(0),))
            }),
            ("output-stream", "subscribe") => self.with(name, |_, (_stream,): (Resource<OutputStream>,)| {
                Ok((Resource::<Pollable>::new_own(0),))
            }),
            ("output-stream", "check-write") => self
                .with(name, |_, (_stream,): (Resource<OutputStream>,)| {
                    Ok((Ok::<u64, StreamError>(WRITABLE),))
                }),
            ("output-stream", "write" | "blocking-write-and-flush") => {
                self.with(name, |guest, (stream, bytes): (Resource<OutputStream>, Vec<u8>)| {
                    guest.print(stream.rep(), &bytes)?;
                    Ok((Ok::<(), StreamError>(()),))
                })
            }
            ("output-stream", "flush" | "blocking-flush") => {
                self.with(name, |_, (_stream,): (Resource<OutputStream>,)| Ok((Ok::<(), StreamError>(()),)))
            }
            _ => self.trap(name),
        }
    }

    /// A function without parameters that always returns the same.
    fn always<R>(&mut self, name: &str, value: impl Fn() -> R + Send + Sync + 'static) -> wasmtime::Result<()>
    where
        R: ComponentNamedList + Lower + 'static,
    {
        self.instance.func_wrap(name, move |_, (): ()| Ok(value()))
    }

    fn with<P, R>(
        &mut self,
        name: &str,
        function: impl Fn(&mut Guest, P) -> Result<R, Stop> + Send + Sync + 'static,
    ) -> wasmtime::Result<()>
    where
        P: ComponentNamedList + Lift + 'static,
        R: ComponentNamedList + Lower + 'static,
    {
        let call =
            move |mut store: StoreContextMut<'_, Guest>, params: P| Ok(function(store.data_mut(), params)?);
        self.instance.func_wrap(name, call)
    }

    /// A function that is there to be linked.
    fn trap(&mut self, name: &str) -> wasmtime::Result<()> {
        let text = format!("it called `{name}` of wasi:{}, which functions may not use", self.interface);
        self.instance.func_new(name, move |_, _, _, _| Err(Stop::Misuse(text.clone()).into()))
    }
}

fn exited(how: &str) -> Stop {
    Stop::Misuse(format!("it called `exit` with {how}: a function returns and does not end the program"))
}

impl Guest {
    /// The time of the call for clocks that do not go below zero.
    fn wall_milliseconds(&self) -> u64 {
        u64::try_from(self.call.now).unwrap_or(0)
    }

    /// The same for a clock that does not go back, though the host's may be set back between two calls.
    fn monotonic_nanoseconds(&mut self) -> u64 {
        self.monotonic = self.monotonic.max(self.wall_milliseconds().saturating_mul(NANOSECONDS.into()));
        self.monotonic
    }

    fn print(&mut self, stream: u32, bytes: &[u8]) -> Result<(), Stop> {
        self.take_bytes(bytes.len())?;
        self.printed.write(stream, bytes, &mut self.log);
        Ok(())
    }
}

/// The interfaces of which at least the shape is there.
const SERVED: [&str; 20] = [
    "cli/environment",
    "cli/exit",
    "cli/stdin",
    "cli/stdout",
    "cli/stderr",
    "cli/terminal-input",
    "cli/terminal-output",
    "cli/terminal-stdin",
    "cli/terminal-stdout",
    "cli/terminal-stderr",
    "clocks/wall-clock",
    "clocks/monotonic-clock",
    "random/random",
    "random/insecure",
    "random/insecure-seed",
    "io/error",
    "io/poll",
    "io/streams",
    "filesystem/types",
    "filesystem/preopens",
];
/// Nanoseconds in a millisecond, the resolution of a call's time.
const NANOSECONDS: u32 = 1_000_000;
/// What a stream takes at once.
const WRITABLE: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_interfaces_of_a_known_release_are_served() {
        assert!(serves("wasi:io/streams@0.2.0") && serves("wasi:clocks/wall-clock@0.2.12"));
        for import in [
            "wasi:sockets/tcp@0.2.0",
            "wasi:http/types@0.2.0",
            "wasi:io/streams@0.3.0",
            "wasi:io/streams",
            "acme:io/streams@0.2.0",
        ] {
            assert!(!serves(import), "{import}");
        }
    }
}
