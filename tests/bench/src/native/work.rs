//! What a loop is made of, and all of them.

use anyhow::Result;
use arrow_array::{ArrayRef, RecordBatch};
use millstream_operator::SinkWriter;
use millstream_types::{Batch, Schema};

use super::{bids, counts, lines, records, windows, words};

/// The loop of a workload, in one thread.
pub(super) trait Work {
    /// What is done with a batch of a port of the source before rows are dealt out; nothing if they are not wanted.
    fn before(&mut self, port: usize, batch: Batch) -> Option<Batch> {
        (port == 0).then_some(batch)
    }

    /// For each row the thread that has to get it, out of so many; none if rows stay where they are.
    fn targets(&self, _batch: &Batch, _threads: u32) -> Option<Vec<u32>> {
        None
    }

    /// What is done with a batch behind that.
    fn process(&mut self, batch: Batch, out: &mut Out) -> Result<()>;

    /// No row up to this event time will follow.
    fn watermark(&mut self, _watermark: i64, _out: &mut Out) -> Result<()> {
        Ok(())
    }
}

/// How a workload is run.
pub(super) struct Loop {
    /// Its name.
    pub(super) name: &'static str,
    /// The records that the generator makes.
    pub(super) records: &'static str,
    /// The columns of its output, given those of the source's first port.
    pub(super) output: fn(&Schema) -> Schema,
    /// A thread's part.
    pub(super) make: fn() -> Box<dyn Work>,
}

/// The loop of a workload.
pub(super) fn find(name: &str) -> Option<&'static Loop> {
    LOOPS.iter().find(|work| work.name == name)
}

const LOOPS: [Loop; 9] = [
    Loop { name: "map", records: "bench-map", output: Schema::clone, make: lines::map },
    Loop { name: "shuffle", records: "bench-shuffle", output: Schema::clone, make: records::shuffle },
    Loop { name: "wordcount", records: "bench-wordcount", output: words::output, make: words::wordcount },
    Loop { name: "window", records: "bench-window", output: windows::output, make: windows::tumbling },
    Loop { name: "process", records: "bench-process", output: counts::output, make: counts::with_timers },
    Loop { name: "q0", records: "bench-nexmark", output: Schema::clone, make: bids::q0 },
    Loop { name: "q1", records: "bench-nexmark", output: Schema::clone, make: bids::q1 },
    Loop { name: "q2", records: "bench-nexmark", output: bids::selected, make: bids::q2 },
    Loop { name: "q5", records: "bench-nexmark", output: bids::hottest, make: bids::q5 },
];

/// Where results go: the sink that a job would have.
pub(super) struct Out {
    pub(super) schema: Schema,
    pub(super) sink: Box<dyn SinkWriter>,
}

impl Out {
    /// Writes rows of these columns.
    pub(super) fn write(&mut self, columns: Vec<ArrayRef>) -> Result<()> {
        let records = RecordBatch::try_new(self.schema.arrow().clone(), columns)?;
        self.pass(Batch::without_times(records))
    }

    /// Writes a batch as it is.
    pub(super) fn pass(&mut self, batch: Batch) -> Result<()> {
        if !batch.is_empty() {
            super::child::block_on(self.sink.write(batch))?;
        }
        Ok(())
    }
}
