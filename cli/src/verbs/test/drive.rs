//! Drives a subject through the steps of a fixture and writes down what comes out.

use std::{collections::BTreeSet, error::Error};

use millstream_connectors::read_json_rows;
use millstream_graph::NodeIndex;
use millstream_types::{Batch, NO_TIME, Schema};
use millstream_worker::Arrival;
use serde_json::Value;

use super::{
    fixture::{Fixture, FixtureError, Step},
    function_job::TIME_COLUMN,
    line::{Input, RowLine},
    subject::{RowTimes, Source, Subject},
};

/// What came out of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Expectations that it would have met.
    pub(super) lines: Vec<FoundLine>,
    /// The error that ended the job, with the position of the input line that caused it.
    pub(super) error: Option<(usize, String)>,
}

/// A row that came out, as the line that expects it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundLine {
    /// Position of the input line behind which it came.
    pub(super) cause: usize,
    /// Where it came out, as [`Subject::form`] counts. Rows of different sinks have no order.
    pub(super) sink: usize,
    pub(super) text: String,
}

/// Runs all steps up to the first error of the job.
pub(super) async fn drive(fixture: &Fixture, subject: &mut Subject) -> Result<Vec<Found>, FixtureError> {
    let mut driver = Driver { fixture, subject, ended: BTreeSet::new() };
    let mut all = Vec::new();
    if let Err(error) = driver.subject.job.open().await {
        let line = fixture.steps.first().and_then(|step| step.inputs.first()).map_or(0, |(line, _)| *line);
        return Ok(vec![Found { lines: Vec::new(), error: Some((line, text(&error))) }]);
    }
    for step in &fixture.steps {
        let found = driver.step(step).await?;
        let failed = found.error.is_some();
        all.push(found);
        if failed {
            return Ok(all);
        }
    }
    if let (Err(error), Some(last), Some(step)) =
        (driver.subject.job.close().await, all.last_mut(), fixture.steps.last())
    {
        last.error = step.inputs.last().map(|(line, _)| (*line, text(&error)));
    }
    Ok(all)
}

struct Driver<'a> {
    fixture: &'a Fixture,
    subject: &'a mut Subject,
    /// Sources that have come to their end.
    ended: BTreeSet<NodeIndex>,
}

/// What one call of the job came to.
type Called = Result<Vec<Arrival>, millstream_task::TaskError>;

impl Driver<'_> {
    async fn step(&mut self, step: &Step) -> Result<Found, FixtureError> {
        let mut found = Found::default();
        let mut inputs = step.inputs.as_slice();
        while let Some((line, input)) = inputs.first() {
            let together = self.together(inputs);
            let (now, later) = inputs.split_at(together);
            inputs = later;
            let last = now.last().map_or(*line, |(line, _)| *line);
            let called = match input {
                Input::Row(_) => self.rows(now).await?,
                Input::Watermark(mark) => {
                    let sources = self.sources(*line, mark.source.as_deref())?;
                    self.each(&sources, |_| Some(mark.watermark.0)).await
                }
                Input::End(end) => {
                    let sources = self.sources(*line, end.source.as_deref())?;
                    self.ended.extend(&sources);
                    self.each(&sources, |_| None).await
                }
                Input::ProcessingTime(time) => self.subject.job.processing_time(time.0).await,
                Input::Barrier(_) => self.subject.job.barrier().await,
            };
            match called {
                Ok(arrivals) => found.lines.extend(self.lines(last, &arrivals)?),
                Err(error) => {
                    found.error = Some((last, text(&error)));
                    break;
                }
            }
        }
        Ok(found)
    }

    /// How many inputs go in at once: rows for the same port.
    fn together(&self, inputs: &[(usize, Input)]) -> usize {
        let target = |input: &Input| match input {
            Input::Row(row) => Some((row.source.clone(), row.port.clone())),
            _ => None,
        };
        match inputs.first().and_then(|(_, input)| target(input)) {
            Some(first) => {
                inputs.iter().take_while(|(_, input)| target(input).as_ref() == Some(&first)).count()
            }
            None => 1,
        }
    }

    async fn each(&mut self, sources: &[NodeIndex], watermark: impl Fn(NodeIndex) -> Option<i64>) -> Called {
        let mut arrivals = Vec::new();
        for &source in sources {
            arrivals.extend(match watermark(source) {
                Some(watermark) => self.subject.job.watermark(source, watermark).await?,
                None => self.subject.job.end(source).await?,
            });
        }
        Ok(arrivals)
    }

    async fn rows(&mut self, rows: &[(usize, Input)]) -> Result<Called, FixtureError> {
        let rows: Vec<(usize, &RowLine)> = rows
            .iter()
            .filter_map(|(line, input)| match input {
                Input::Row(row) => Some((*line, row)),
                _ => None,
            })
            .collect();
        let Some(&(line, first)) = rows.first() else { return Ok(Ok(Vec::new())) };
        let source = self.source(line, first.source.as_deref())?;
        let (port, schema) = self.port(line, source, first.port.as_deref())?;
        let node = source.node;
        let batch = self.batch(&rows, &schema)?;
        let timed = match self.subject.rows {
            // Row by row, so that the line with a time that cannot be used is known.
            RowTimes::Source => self.with_source_times(node, port, &rows, batch)?,
            RowTimes::Beside | RowTimes::Required => batch,
        };
        Ok(self.subject.job.rows(node, port, timed).await)
    }

    /// The rows as a batch, with the times that stand beside them.
    fn batch(&self, rows: &[(usize, &RowLine)], schema: &Schema) -> Result<Batch, FixtureError> {
        let (mut texts, mut times) = (Vec::new(), Vec::new());
        for (line, row) in rows {
            self.check_columns(*line, row, schema)?;
            let time = self.time_beside(*line, row)?;
            let mut columns = row.row.clone();
            if schema.index_of(TIME_COLUMN).is_some() {
                columns.insert(TIME_COLUMN.to_owned(), time.unwrap_or_default().into());
            }
            texts.push(Value::Object(columns).to_string());
            times.push(time.unwrap_or(NO_TIME));
        }
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let line = |at: usize| rows.get(at).map_or(0, |(line, _)| *line);
        let batch = read_json_rows(schema, &texts);
        let batch = batch.map_err(|(at, problem)| self.fixture.error(line(at), problem.to_string()))?;
        batch.with_times(times.into()).map_err(|error| self.fixture.error(line(0), error.to_string()))
    }

    fn check_columns(&self, line: usize, row: &RowLine, schema: &Schema) -> Result<(), FixtureError> {
        let visible = || schema.fields().iter().map(|field| &field.name).filter(|name| *name != TIME_COLUMN);
        let Some(unknown) = row.row.keys().find(|name| !visible().any(|known| known == *name)) else {
            return Ok(());
        };
        let known = visible().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let how = match self.subject.rows {
            RowTimes::Source => "",
            _ => "; the first line's `schema` can add others",
        };
        Err(self.fixture.error(line, format!("found the column `{unknown}`, expected {known}{how}")))
    }

    fn time_beside(&self, line: usize, row: &RowLine) -> Result<Option<i64>, FixtureError> {
        let problem = match (self.subject.rows, row.time) {
            (RowTimes::Source, Some(_)) => {
                "found a `time` beside the row, expected none: a column has the event time"
            }
            (RowTimes::Required, None) => {
                "found no `time` beside the row, which the function needs: expected one such as \
                 \"time\":\"2013-01-31T10:00:00Z\""
            }
            (_, time) => return Ok(time.map(|time| time.0)),
        };
        Err(self.fixture.error(line, problem))
    }

    fn with_source_times(
        &self,
        source: NodeIndex,
        port: usize,
        rows: &[(usize, &RowLine)],
        batch: Batch,
    ) -> Result<Batch, FixtureError> {
        for (at, (line, _)) in rows.iter().enumerate() {
            let alone = self.subject.job.with_source_times(source, port, batch.slice(at, 1));
            alone.map_err(|refused| self.fixture.error(*line, refused.reason))?;
        }
        let line = rows.first().map_or(0, |(line, _)| *line);
        let timed = self.subject.job.with_source_times(source, port, batch);
        timed.map_err(|refused| self.fixture.error(line, refused.reason))
    }

    /// The source of a row.
    fn source(&self, line: usize, name: Option<&str>) -> Result<&Source, FixtureError> {
        let sources = &self.subject.sources;
        let found = match name {
            Some(name) => sources.iter().find(|source| source.name == name),
            None => sources.first().filter(|_| sources.len() == 1),
        };
        let known =
            || sources.iter().map(|source| format!("`{}`", source.name)).collect::<Vec<_>>().join(", ");
        let source = found.ok_or_else(|| {
            let what = name.map_or("no `source`".to_owned(), |name| format!("the source `{name}`"));
            self.fixture.error(line, format!("found {what}, expected one of {}", known()))
        })?;
        if self.ended.contains(&source.node) {
            return Err(self
                .fixture
                .error(line, format!("found an input of `{}` behind its end", source.name)));
        }
        Ok(source)
    }

    /// The source of this name, or all that have not ended.
    fn sources(&self, line: usize, name: Option<&str>) -> Result<Vec<NodeIndex>, FixtureError> {
        let open = || {
            self.subject.sources.iter().map(|source| source.node).filter(|node| !self.ended.contains(node))
        };
        match name {
            Some(_) => Ok(vec![self.source(line, name)?.node]),
            None if open().next().is_none() => {
                Err(self.fixture.error(line, "found an input behind the end of all"))
            }
            None => Ok(open().collect()),
        }
    }

    fn port(
        &self,
        line: usize,
        source: &Source,
        name: Option<&str>,
    ) -> Result<(usize, Schema), FixtureError> {
        let position = match name {
            Some(name) => source.ports.iter().position(|(port, _)| port == name),
            None => Some(0),
        };
        let found = position.and_then(|at| Some((at, source.ports.get(at)?.1.clone())));
        found.ok_or_else(|| {
            let known =
                source.ports.iter().map(|(port, _)| format!("`{port}`")).collect::<Vec<_>>().join(", ");
            let name = name.unwrap_or_default();
            self.fixture.error(line, format!("found the port `{name}`, expected one of {known}"))
        })
    }

    fn lines(&self, cause: usize, arrivals: &[Arrival]) -> Result<Vec<FoundLine>, FixtureError> {
        let mut lines = Vec::new();
        for Arrival { sink, batch } in arrivals {
            let Some((sink, form)) = self.subject.form(*sink) else { continue };
            let found = form.found(batch).map_err(|error| self.fixture.error(cause, error.to_string()))?;
            lines.extend(found.into_iter().map(|text| FoundLine { cause, sink, text }));
        }
        Ok(lines)
    }
}

/// An error with its causes, in one text.
fn text(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
