//! Errors of the engine as errors of a function: what stopped it, its panic text, and its call stack by name.

use std::fmt::Write as _;

use millstream_operator::FunctionError;
use wasmtime::{Trap, WasmBacktrace};

use crate::{
    options::FunctionLimits,
    stop::{Bytes, Stop},
};

/// A call that failed: where, and what is known of the guest.
pub(crate) struct Failed<'a> {
    pub(crate) function: &'a str,
    pub(crate) call: &'static str,
    pub(crate) limits: &'a FunctionLimits,
    pub(crate) stack_bytes: usize,
    /// What the guest's panic hook said before it trapped.
    pub(crate) panic: Option<String>,
}

/// How many frames of a guest's call stack are shown.
pub(crate) const MAX_FRAMES: usize = 20;

impl Failed<'_> {
    /// The error for what the engine reported.
    pub(crate) fn explain(self, error: &wasmtime::Error) -> FunctionError {
        let backtrace = error.downcast_ref::<WasmBacktrace>();
        let frames = backtrace.map(frames).unwrap_or_default();
        if let Some(stop) = error.downcast_ref::<Stop>() {
            return if stop.is_budget() {
                self.over(stop.to_string(), &frames)
            } else {
                self.trapped(stop.to_string(), &frames)
            };
        }
        match error.downcast_ref::<Trap>() {
            Some(Trap::StackOverflow) => {
                let stack = Bytes(self.stack_bytes);
                self.over(format!("it recursed too deep: its calls need more than {stack} of stack"), &frames)
            }
            Some(trap) => {
                let message = machine_text(*trap, &frames);
                self.trapped(message, &frames)
            }
            None if is_out_of_hostcall_fuel(error) => {
                let stop = Stop::CallBytes { limit: self.limits.call_bytes };
                self.over(stop.to_string(), &frames)
            }
            None if backtrace.is_some() => self.trapped(format!("{:#}", error.root_cause()), &frames),
            None => FunctionError::Malformed {
                function: self.function.to_owned(),
                call: self.call,
                problem: format!("{:#}", error.root_cause()),
            },
        }
    }

    fn trapped(self, message: String, frames: &[String]) -> FunctionError {
        let (function, call) = (self.function.to_owned(), self.call);
        let message = self.panic.unwrap_or(message);
        FunctionError::Trapped { function, call, message, backtrace: listed(frames) }
    }

    fn over(self, budget: String, frames: &[String]) -> FunctionError {
        let (function, call) = (self.function.to_owned(), self.call);
        FunctionError::OverBudget { function, call, budget, backtrace: listed(frames) }
    }
}

/// What the machine says of a trap. Recursion without end usually runs out of the stack that a compiler keeps in the
/// guest's memory before it runs out of the machine's, and then looks like any other bad access.
fn machine_text(trap: Trap, frames: &[String]) -> String {
    let recursing = frames.len() >= MAX_FRAMES && {
        let mut distinct: Vec<&String> = frames[frames.len() / 2..].iter().collect();
        distinct.sort_unstable();
        distinct.dedup();
        distinct.len() <= 3
    };
    match trap {
        Trap::UnreachableCodeReached => {
            "it reached code that must not be reached (a panic without a text, or an abort)".to_owned()
        }
        Trap::MemoryOutOfBounds if recursing => "it recursed too deep and ran out of its stack".to_owned(),
        other => other.to_string(),
    }
}

/// Names of the guest's functions, the innermost first.
fn frames(backtrace: &WasmBacktrace) -> Vec<String> {
    let frames = backtrace.frames().iter().take(MAX_FRAMES);
    let name = |frame: &wasmtime::FrameInfo| match frame.func_name() {
        Some(name) => format!("{:#}", rustc_demangle::demangle(name)),
        None => format!("function {} (the module has no names: it was stripped)", frame.func_index()),
    };
    frames.map(name).collect()
}

fn listed(frames: &[String]) -> String {
    frames.iter().enumerate().fold(String::new(), |mut text, (i, frame)| {
        let _ = write!(text, "\n  {i:>2}: {frame}");
        text
    })
}

/// The engine has no type for it that could be named.
fn is_out_of_hostcall_fuel(error: &wasmtime::Error) -> bool {
    error.root_cause().to_string().contains("fuel allocated for hostcalls has been exhausted")
}
