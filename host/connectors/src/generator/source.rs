//! The `generator` source.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use millstream_operator::{
    Boundedness, ConnectorError, OperatorContext, Read, Source, SourceSnapshot, Split, SplitEnumerator,
    SplitReader,
};
use millstream_types::{Batch, Positions, RecordNumbers, RecordUnit, Schema};
use serde_json::Value;

use super::{
    Generate, Kind, Numbers,
    options::GeneratorOptions,
    pace::{Due, Pace},
    split::{GeneratorEnumerator, GeneratorSplit},
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

    fn is_side_by_side(&self) -> bool {
        true
    }

    fn enumerator(&self, parallelism: u32) -> Result<Box<dyn SplitEnumerator>, ConnectorError> {
        Ok(Box::new(GeneratorEnumerator::new(self.records, parallelism)))
    }

    fn restore(
        &self,
        parallelism: u32,
        snapshot: &SourceSnapshot,
    ) -> Result<Box<dyn SplitEnumerator>, ConnectorError> {
        Ok(Box::new(GeneratorEnumerator::restore(parallelism, snapshot)?))
    }

    fn reader(&self, ctx: &OperatorContext) -> Result<Box<dyn SplitReader>, ConnectorError> {
        Ok(Box::new(GeneratorReader {
            name: Arc::from(ctx.operator.as_str()),
            generator: self.kind.generator(),
            batch_rows: self.kind.batch_rows(),
            seconds: self.seconds,
            rate: self.rate.map(|rate| rate / f64::from(ctx.parallelism)),
            split: None,
            clock: None,
        }))
    }
}

/// Makes the records of one subtask.
struct GeneratorReader {
    /// The source's, for positions.
    name: Arc<str>,
    generator: Box<dyn Generate>,
    batch_rows: usize,
    seconds: Option<f64>,
    rate: Option<f64>,
    split: Option<GeneratorSplit>,
    clock: Option<ReaderClock>,
}

/// What a reader knows of wall time, from its first record on.
struct ReaderClock {
    /// Nanoseconds on the common clock.
    started: u64,
    pace: Option<Pace>,
}

/// What is to be made now.
enum Turn {
    Records(Numbers),
    Wait(Duration),
    Finished,
}

impl GeneratorReader {
    fn generate(&mut self, numbers: &Numbers) -> Vec<(usize, Batch)> {
        let Numbers { first, stride, count: rows, .. } = *numbers;
        // With several ports the records of each are here and there.
        let numbers_of = |batch: &Batch| {
            if batch.rows() == rows {
                RecordNumbers::Even { first, stride, rows }
            } else {
                RecordNumbers::Within(first, first + stride * rows.saturating_sub(1) as u64)
            }
        };
        let name = self.name.clone();
        let with_positions = |(port, batch): (usize, Batch)| {
            let positions = Positions::read(name.clone(), RecordUnit::Record, numbers_of(&batch));
            (port, batch.with_positions(Some(positions)))
        };
        self.generator.generate(numbers).into_iter().map(with_positions).collect()
    }

    fn turn(&mut self) -> Turn {
        let Some(split) = &mut self.split else {
            return Turn::Finished;
        };
        let now = Pace::now();
        let clock = self.clock.get_or_insert_with(|| ReaderClock {
            started: now,
            pace: self.rate.map(|rate| Pace::new(rate, now)),
        });
        let elapsed = split.elapsed.saturating_add(now - clock.started);
        let over = self.seconds.is_some_and(|seconds| elapsed as f64 > seconds * 1e9);
        if over || split.is_empty() {
            return Turn::Finished;
        }
        let mut count = split.left().min(self.batch_rows as u64);
        let mut due = None;
        if let Some(pace) = &mut clock.pace {
            count = match pace.due(now) {
                Due::Now(records) => count.min(records),
                Due::Later(time) => return Turn::Wait(time),
            };
            due = Some(pace.clone());
            pace.made(count);
        }
        let first = split.take(count);
        Turn::Records(Numbers { first, stride: split.stride, count: count as usize, pace: due })
    }
}

#[async_trait(?Send)]
impl SplitReader for GeneratorReader {
    fn start(&mut self, split: Split) -> Result<(), ConnectorError> {
        self.split = Some(GeneratorSplit::decode(&split)?);
        Ok(())
    }

    /// Cancel-safe: it never waits.
    async fn read(&mut self) -> Result<Read, ConnectorError> {
        Ok(match self.turn() {
            Turn::Records(numbers) => Read::Rows { batches: self.generate(&numbers), bad: Vec::new() },
            Turn::Wait(time) => Read::Wait(time),
            Turn::Finished => {
                self.split = None;
                Read::SplitFinished
            }
        })
    }

    fn snapshot(&self) -> Result<Option<Split>, ConnectorError> {
        let Some(mut split) = self.split else { return Ok(None) };
        if let Some(clock) = &self.clock {
            split.elapsed = split.elapsed.saturating_add(Pace::now() - clock.started);
        }
        Ok(Some(split.encode()))
    }
}
