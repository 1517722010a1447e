//! The clock behind budgets: a thread of its own moves the engine's epoch on, at which guests yield.
//!
//! It is an OS thread and no task, so that a guest that never returns cannot keep it from running.

use std::{
    io,
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    thread,
    time::Duration,
};

use wasmtime::Engine;

/// Ends the thread when it is dropped.
#[derive(Debug)]
pub(crate) struct Ticker {
    _stop: Sender<()>,
}

impl Ticker {
    /// Starts the thread.
    pub(crate) fn start(engine: &Engine, every: Duration) -> io::Result<Self> {
        let (stop, stopped) = channel();
        let engine = engine.weak();
        let tick = move || engine.upgrade().map(|engine| engine.increment_epoch());
        thread::Builder::new().name("wasm-epoch".to_owned()).spawn(move || run(&stopped, every, tick))?;
        Ok(Self { _stop: stop })
    }
}

fn run(stopped: &Receiver<()>, every: Duration, tick: impl Fn() -> Option<()>) {
    while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) && tick().is_some() {}
}
