//! `timers`: set and cleared for many keys at once.

use millstream_types::Clock;

use super::Guest;
use crate::{
    bindings::{timers, types as wit},
    stop::Stop,
};

impl timers::Host for Guest {
    fn set(&mut self, clock: wit::Clock, keys: Vec<u32>, times: Vec<i64>) -> wasmtime::Result<()> {
        let clock = self.timers_of(clock, &keys, &times)?;
        Ok(self.keyed()?.set_timers(clock, &keys, &times).map_err(Stop::from)?)
    }

    fn clear(&mut self, clock: wit::Clock, keys: Vec<u32>, times: Vec<i64>) -> wasmtime::Result<()> {
        let clock = self.timers_of(clock, &keys, &times)?;
        Ok(self.keyed()?.clear_timers(clock, &keys, &times).map_err(Stop::from)?)
    }
}

impl Guest {
    /// Checks the arguments of a call against each other and against the manifest.
    fn timers_of(&mut self, clock: wit::Clock, keys: &[u32], times: &[i64]) -> Result<Clock, Stop> {
        self.take_bytes(size_of_val(keys) + size_of_val(times))?;
        if keys.len() != times.len() {
            return Err(Stop::Misuse(format!("timers: {} times for {} keys", times.len(), keys.len())));
        }
        let (clock, name) = match clock {
            wit::Clock::Event => (Clock::Event, "event"),
            wit::Clock::Processing => (Clock::Processing, "processing"),
        };
        if !self.function.as_ref().is_some_and(|f| f.timers.contains(&clock)) {
            return Err(Stop::Misuse(format!("timers: the manifest does not declare `{name}` in `timers`")));
        }
        Ok(clock)
    }
}
