//! The `generator` source.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use async_trait::async_trait;
use millstream_operator::{
    Assignment, Boundedness, ConnectorError, OperatorContext, Read, Source, Split, SplitEnumerator,
    SplitReader,
};
use millstream_types::{Batch, Limits, Schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Generate, Kind, Numbers,
    options::GeneratorOptions,
    pace::{Due, Pace},
};
use crate::options::OptionsError;

/// Makes records, at a rate or as fast as they are taken.
pub(crate) struct GeneratorSource {
    kind: Box<dyn Kind>,
    records: Option<u64>,
    seconds: Option<f64>,
    rate: Option<f64>,
}

impl GeneratorSource {
    pub(crate) fn new(options: &Value, schema: Option<Schema>) -> Result<Self, OptionsError> {
        let options = GeneratorOptions::parse(options)?;
        if schema.is_some_and(|schema| !schema.is_empty()) {
            return Err(OptionsError::at(
                "schema",
                "a generator's columns follow from its `kind` or `fields`: leave `schema` out",
            ));
        }
        let kind = options.make_kind()?;
        Ok(Self { kind, records: options.records, seconds: options.seconds, rate: options.rate })
    }
}

impl Source for GeneratorSource {
    fn outputs(&self) -> Vec<(String, Schema)> {
        self.kind.outputs()
    }

    fn boundedness(&self) -> Boundedness {
        if self.records.is_some() || self.seconds.is_some() {
            Boundedness::Bounded
        } else {
            Boundedness::Unbounded
        }
    }

    fn enumerator(&self, parallelism: u32) -> Result<Box<dyn SplitEnumerator>, ConnectorError> {
        Ok(Box::new(GeneratorEnumerator { records: self.records, waiting: vec![true; parallelism as usize] }))
    }

    fn reader(&self, ctx: &OperatorContext) -> Result<Box<dyn SplitReader>, ConnectorError> {
        Ok(Box::new(GeneratorReader {
            generator: self.kind.generator(),
            seconds: self.seconds,
            rate: self.rate.map(|rate| rate / f64::from(ctx.parallelism)),
            split: None,
            pending: VecDeque::new(),
            started: None,
            pace: None,
        }))
    }
}

/// What a subtask makes: `next`, `next + stride` and so on below `end`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct GeneratorSplit {
    next: u64,
    stride: u64,
    end: u64,
}

/// Gives each subtask its one split.
struct GeneratorEnumerator {
    records: Option<u64>,
    /// By subtask.
    waiting: Vec<bool>,
}

impl SplitEnumerator for GeneratorEnumerator {
    fn next_split(&mut self, subtask: u32) -> Result<Assignment, ConnectorError> {
        let stride = self.waiting.len() as u64;
        let waiting = self.waiting.get_mut(subtask as usize).is_some_and(std::mem::take);
        if !waiting {
            return Ok(Assignment::Finished);
        }
        let split =
            GeneratorSplit { next: subtask.into(), stride, end: self.records.unwrap_or(i64::MAX as u64) };
        let payload = serde_json::to_vec(&split).expect("numbers always encode");
        Ok(Assignment::Split(Split { id: Arc::from(format!("{subtask} of {stride}")), payload }))
    }
}

/// Makes the records of one subtask.
struct GeneratorReader {
    generator: Box<dyn Generate>,
    seconds: Option<f64>,
    rate: Option<f64>,
    split: Option<GeneratorSplit>,
    /// Batches of records that have been made, in order of the ports.
    pending: VecDeque<(usize, Batch)>,
    /// When the first record was asked for, nanoseconds on the common clock.
    started: Option<u64>,
    pace: Option<Pace>,
}

/// What is to be made now.
enum Turn {
    Records(Numbers),
    Wait(Duration),
    Finished,
}

impl GeneratorReader {
    fn turn(&mut self) -> Turn {
        let Some(split) = &mut self.split else {
            return Turn::Finished;
        };
        let now = Pace::now();
        let started = *self.started.get_or_insert(now);
        let over = self.seconds.is_some_and(|seconds| (now - started) as f64 > seconds * 1e9);
        if over || split.next >= split.end {
            return Turn::Finished;
        }
        let left = (split.end - split.next).div_ceil(split.stride);
        let mut count = left.min(Limits::BATCH_ROWS as u64);
        let pace = self.rate.map(|rate| self.pace.get_or_insert_with(|| Pace::new(rate, started)));
        let mut due = None;
        if let Some(pace) = pace {
            count = match pace.due(now) {
                Due::Now(records) => count.min(records),
                Due::Later(time) => return Turn::Wait(time),
            };
            due = Some(pace.clone());
            pace.made(count);
        }
        let numbers = Numbers { first: split.next, stride: split.stride, count: count as usize, pace: due };
        split.next += count * split.stride;
        Turn::Records(numbers)
    }
}

#[async_trait(?Send)]
impl SplitReader for GeneratorReader {
    fn start(&mut self, split: Split) -> Result<(), ConnectorError> {
        let split = serde_json::from_slice(&split.payload).map_err(|e| {
            ConnectorError::external(format!("split `{}` was not made by a generator", split.id), e)
        })?;
        self.split = Some(split);
        Ok(())
    }

    /// Cancel-safe: it never waits.
    async fn read(&mut self) -> Result<Read, ConnectorError> {
        loop {
            if let Some((port, batch)) = self.pending.pop_front() {
                return Ok(Read::Rows { port, batch, bad: Vec::new() });
            }
            match self.turn() {
                Turn::Records(numbers) => self.pending.extend(self.generator.generate(&numbers)),
                Turn::Wait(time) => return Ok(Read::Wait(time)),
                Turn::Finished => {
                    self.split = None;
                    return Ok(Read::SplitFinished);
                }
            }
        }
    }
}
