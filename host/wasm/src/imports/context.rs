//! `context`: log, panic text, parameters, metrics, where it runs, time and random numbers.

use tracing::Level;

use super::{Guest, log::printable};
use crate::{
    bindings::context::{self, TaskInfo},
    stop::Stop,
};

impl context::Host for Guest {
    fn log(&mut self, level: context::Level, message: String) -> wasmtime::Result<()> {
        self.take_bytes(message.len())?;
        let level = match level {
            context::Level::Trace => Level::TRACE,
            context::Level::Debug => Level::DEBUG,
            context::Level::Info => Level::INFO,
            context::Level::Warn => Level::WARN,
            context::Level::Error => Level::ERROR,
        };
        self.log.line(level, &message);
        Ok(())
    }

    fn panicked(&mut self, message: String) -> wasmtime::Result<()> {
        self.panic = Some(printable(&message));
        Ok(())
    }

    fn parameter(&mut self, name: String) -> wasmtime::Result<Option<String>> {
        Ok(self.place.as_ref().and_then(|p| p.parameters.get(&name)).cloned())
    }

    fn count(&mut self, metric: String, by: u64) -> wasmtime::Result<()> {
        let counts = &mut self.call.counts;
        match counts.iter_mut().find(|(name, _)| *name == metric) {
            Some((_, sum)) => *sum = sum.saturating_add(by),
            None => put(counts, metric, by)?,
        }
        Ok(())
    }

    fn gauge(&mut self, metric: String, value: f64) -> wasmtime::Result<()> {
        let gauges = &mut self.call.gauges;
        match gauges.iter_mut().find(|(name, _)| *name == metric) {
            Some((_, latest)) => *latest = value,
            None => put(gauges, metric, value)?,
        }
        Ok(())
    }

    fn task(&mut self) -> wasmtime::Result<TaskInfo> {
        let place = self
            .place
            .as_ref()
            .ok_or_else(|| Stop::Misuse("`task`: a module that is described runs nowhere".to_owned()))?;
        Ok(TaskInfo {
            job: place.job.to_string(),
            operator: place.operator.to_string(),
            subtask: place.subtask.0,
            parallelism: place.parallelism,
            attempt: place.attempt.0,
        })
    }

    fn now(&mut self) -> wasmtime::Result<i64> {
        Ok(self.call.now)
    }

    fn random(&mut self) -> wasmtime::Result<u64> {
        Ok(self.random.next())
    }
}

/// Adds a metric, unless there are so many that they are no metrics but data.
fn put<V>(metrics: &mut Vec<(String, V)>, name: String, value: V) -> Result<(), Stop> {
    if metrics.len() >= MAX_METRICS {
        return Err(Stop::Misuse(format!(
            "one call uses more than {MAX_METRICS} metrics: names are not for data"
        )));
    }
    if name.len() > MAX_NAME_BYTES {
        return Err(Stop::Misuse(format!(
            "a metric's name has {} bytes: at most {MAX_NAME_BYTES} are kept",
            name.len()
        )));
    }
    metrics.push((name, value));
    Ok(())
}

const MAX_METRICS: usize = 256;
const MAX_NAME_BYTES: usize = 256;
