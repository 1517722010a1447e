//! Runs sources and sinks as a task would.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use arrow_array::RecordBatch;
use expect_test::Expect;
use millstream_connectors::Connectors;
use millstream_operator::{
    Assignment, BadRow, Beginning, ConnectorError, OperatorContext, OperatorMetrics, Read, Sink, Source,
    SplitReader, SystemClock,
};
use millstream_types::{
    Attempt, Batch, Field, JobName, MaxParallelism, OperatorId, RunId, Schema, SubtaskIndex,
};
use serde_json::Value;

/// What a source gave.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) batches: Vec<Batch>,
    pub(crate) bad: Vec<BadRow>,
    pub(crate) splits: Vec<String>,
}

impl Found {
    /// Reads once; false at the end of a split.
    pub(crate) fn read_on(&mut self, reader: &mut dyn SplitReader) -> Result<bool, ConnectorError> {
        match block_on(reader.read())? {
            Read::Rows { batches, bad } => {
                self.batches.extend(batches.into_iter().map(|(_, batch)| batch));
                self.bad.extend(bad);
            }
            Read::Wait(time) => std::thread::sleep(time),
            Read::SplitFinished => return Ok(false),
        }
        Ok(true)
    }

    pub(crate) fn rows(&self) -> Vec<String> {
        self.batches.iter().flat_map(|batch| json_lines(batch.records())).collect()
    }

    /// Rows, then what was bad, as text to compare.
    pub(crate) fn shown(&self) -> String {
        let bad = self.bad.iter().map(|b| format!("{}\n    {}\n    {}", b.position, b.reason, b.text));
        self.rows().into_iter().chain(bad).map(|line| line + "\n").collect()
    }
}

pub(crate) fn schema(columns: &[(&str, &str)]) -> Schema {
    Schema::new(
        columns.iter().map(|(name, text)| Field::parse(*name, text).expect("a type")).collect::<Vec<_>>(),
    )
}

pub(crate) fn source(
    connector: &str,
    options: Value,
    columns: &[(&str, &str)],
    base: &Path,
) -> Arc<dyn Source> {
    let schema = (!columns.is_empty()).then(|| schema(columns));
    Connectors::builtin().source(connector, &options, schema, base).expect("good options")
}

pub(crate) fn sink(connector: &str, options: Value, base: &Path) -> Arc<dyn Sink> {
    Connectors::builtin().sink(connector, &options, base).expect("good options")
}

pub(crate) fn context(subtask: u32, parallelism: u32) -> OperatorContext {
    OperatorContext {
        job: JobName::new("test"),
        operator: OperatorId::new("operator"),
        subtask: SubtaskIndex(subtask),
        parallelism,
        max_parallelism: MaxParallelism::default(),
        run: Default::default(),
        attempt: Attempt(0),
        parameters: Arc::new(BTreeMap::new()),
        states: Arc::new([]),
        checkpoints: false,
        restored: false,
        metrics: Arc::new(OperatorMetrics::default()),
        clock: Arc::new(SystemClock),
    }
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
}

/// Reads a bounded source to its end by one reader.
pub(crate) fn read(source: &dyn Source) -> Result<Found, ConnectorError> {
    read_subtask(source, 0, 1)
}

/// What one of several readers gets when it alone asks.
pub(crate) fn read_subtask(
    source: &dyn Source,
    subtask: u32,
    parallelism: u32,
) -> Result<Found, ConnectorError> {
    let mut found = Found::default();
    let mut enumerator = source.enumerator(parallelism)?;
    let mut reader = source.reader(&context(subtask, parallelism))?;
    while let Assignment::Splits(splits) = enumerator.next_split(subtask)? {
        for split in splits {
            found.splits.push(split.id.to_string());
            reader.start(split)?;
            while found.read_on(&mut *reader)? {}
        }
    }
    Ok(found)
}

/// The first execution of a job, from its beginning.
pub(crate) const BEGINNING: Beginning = Beginning { run: RunId(7), attempt: Attempt(0), restored: false };

/// Writes batches by one writer, each time in a run of its own.
pub(crate) fn write(sink: &dyn Sink, schema: &Schema, batches: &[Batch]) -> Result<(), ConnectorError> {
    static RUNS: AtomicU64 = AtomicU64::new(100);
    sink.accepts(schema).expect("a schema that it takes");
    let run = RunId(RUNS.fetch_add(1, Relaxed));
    sink.begin(&Beginning { run, ..BEGINNING })?;
    let mut writer = sink.writer(schema, &OperatorContext { run, ..context(0, 1) })?;
    block_on(async {
        for batch in batches {
            writer.write(batch.clone()).await?;
        }
        writer.finish().await
    })
}

pub(crate) fn json_lines(records: &RecordBatch) -> Vec<String> {
    use arrow_array::{ArrayRef, cast::AsArray, types::TimestampMillisecondType};
    // Arrow prints times with an offset only.
    let columns =
        records.columns().iter().map(|column| match column.as_primitive_opt::<TimestampMillisecondType>() {
            Some(times) => Arc::new(times.clone().with_timezone("+00:00")) as ArrayRef,
            None => column.clone(),
        });
    let names = records.schema().fields().iter().map(|f| f.name().clone()).collect::<Vec<_>>();
    let records = RecordBatch::try_from_iter(names.into_iter().zip(columns)).expect("the same columns");
    let mut writer = arrow_json::LineDelimitedWriter::new(Vec::new());
    writer.write(&records).expect("rows as JSON");
    writer.finish().expect("rows as JSON");
    let text = String::from_utf8(writer.into_inner()).expect("JSON is text");
    text.lines().map(str::to_owned).collect()
}

/// Names and sizes do not change with the folder: positions are shown without it.
pub(crate) fn without_folder(text: &str, folder: &Path) -> String {
    text.replace(&format!("{}/", folder.display()), "")
}

/// Reads a file of these bytes; rows first, then what was bad, or the error.
pub(crate) fn check_file(
    name: &str,
    bytes: &[u8],
    options: Value,
    columns: &[(&str, &str)],
    expected: Expect,
) {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join(name), bytes).expect("written");
    let mut options = options;
    options["path"] = name.into();
    let source = source("file", options, columns, folder.path());
    let shown = match read(&*source) {
        Ok(found) => found.shown(),
        Err(error) => format!("{:?}: {error}\n", error.whose),
    };
    expected.assert_eq(&without_folder(&shown, folder.path()));
}
