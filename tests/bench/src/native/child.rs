//! The process that runs a loop: threads that read, deal out, process and write.
//!
//! Each thread is source and target at once. It never waits with a full queue before it: while a queue of another one
//! is full it takes from its own, so that none of them waits for ever.

use std::{
    io::Write,
    path::Path,
    pin::pin,
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel},
    },
    task::{Context as TaskContext, Poll, Waker},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow};
use arrow_array::UInt32Array;
use millstream_connectors::Connectors;
use millstream_operator::{
    Assignment, Beginning, OperatorContext, Read, Sink, Source, Split, SplitReader, SystemClock,
};
use millstream_types::{
    Attempt, Batch, JobName, MAX_WATERMARK, MIN_WATERMARK, MaxParallelism, OperatorId, RunId, SubtaskIndex,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::work::{self, Loop, Out, Work};
use crate::{
    process::ProcessFigures,
    workload::{self, Checksum, End},
};

/// What the process is asked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Child {
    pub(crate) workload: String,
    pub(crate) parallelism: u32,
    pub(crate) end: End,
    pub(crate) checked: bool,
}

/// What it answers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) records: u64,
    pub(crate) seconds: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) peak_memory: u64,
    pub(crate) checksum: Option<Checksum>,
}

/// Runs a loop and prints the report.
pub(crate) fn run_child(asked: &str) -> Result<()> {
    let child: Child = serde_json::from_str(asked)?;
    let report = run(&child)?;
    writeln!(std::io::stdout(), "{}", serde_json::to_string(&report)?)?;
    Ok(())
}

fn run(child: &Child) -> Result<Report> {
    let work = work::find(&child.workload).with_context(|| format!("no loop for {}", child.workload))?;
    let connectors = Connectors::builtin();
    let source = connectors.source("generator", &generator(work, child.end), None, Path::new(""));
    let source = source.map_err(|e| anyhow!("{e}"))?;
    let (sink, options) = sink(child)?;
    let sink = connectors.sink(sink, &options, Path::new("")).map_err(|e| anyhow!("{e}"))?;
    let started = Instant::now();
    let records = run_threads(work, child.parallelism, source.as_ref(), sink.as_ref())?;
    let seconds = started.elapsed().as_secs_f64();
    let figures = ProcessFigures::now().context("this system does not say what a process has used")?;
    let checksum = connectors.results().checksums().into_values().next();
    let checksum = checksum.map(|found| Checksum { rows: found.rows, checksum: format!("{:x}", found.sum) });
    let (cpu_seconds, peak_memory) = (figures.cpu_seconds, figures.peak_memory);
    Ok(Report { records, seconds, cpu_seconds, peak_memory, checksum })
}

fn generator(work: &Loop, end: End) -> Value {
    match end {
        End::Records(records) => json!({ "kind": work.records, "records": records }),
        End::Seconds(seconds) => json!({ "kind": work.records, "seconds": seconds }),
    }
}

fn sink(child: &Child) -> Result<(&'static str, Value)> {
    let workload = workload::select(std::slice::from_ref(&child.workload))?[0];
    Ok(match workload.form {
        Some(form) if child.checked => ("checksum", json!({ "form": form })),
        _ => ("blackhole", json!({})),
    })
}

fn run_threads(work: &'static Loop, threads: u32, source: &dyn Source, sink: &dyn Sink) -> Result<u64> {
    let (_, input) = source.outputs().swap_remove(0);
    let schema = (work.output)(&input);
    let mut splits = source.enumerator(threads)?;
    sink.begin(&Beginning { run: RunId(0), attempt: Attempt(0), restored: false })?;
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..threads).map(|_| sync_channel(QUEUED)).unzip();
    thread::scope(|scope| {
        let mut running = Vec::new();
        for (index, inbox) in receivers.into_iter().enumerate() {
            let ctx = context(index as u32, threads);
            let Assignment::Splits(splits) = splits.next_split(index as u32)? else { continue };
            let (schema, senders) = (schema.clone(), senders.clone());
            running.push(scope.spawn(move || -> Result<u64> {
                let reader = source.reader(&ctx)?;
                let out = Out { sink: sink.writer(&schema, &ctx)?, schema };
                let watermarks = vec![MIN_WATERMARK; senders.len()];
                Thread {
                    index,
                    work: (work.make)(),
                    out,
                    senders,
                    inbox,
                    watermarks,
                    watermark: MIN_WATERMARK,
                }
                .run(reader, splits)
            }));
        }
        running.into_iter().try_fold(0, |sum, thread| {
            let records = thread.join().map_err(|_| anyhow!("a thread of the native loop panicked"))?;
            Ok(sum + records?)
        })
    })
}

fn context(index: u32, threads: u32) -> OperatorContext {
    OperatorContext {
        job: JobName::new("native"),
        operator: OperatorId::new("native"),
        subtask: SubtaskIndex(index),
        parallelism: threads,
        max_parallelism: MaxParallelism::DEFAULT,
        run: Default::default(),
        attempt: Attempt(0),
        parameters: Arc::default(),
        states: Arc::new([]),
        checkpoints: false,
        restored: false,
        metrics: Arc::default(),
        clock: Arc::new(SystemClock),
    }
}

/// What goes from one thread to another.
enum Message {
    Rows(Batch),
    Watermark(usize, i64),
}

struct Thread {
    index: usize,
    work: Box<dyn Work>,
    out: Out,
    senders: Vec<SyncSender<Message>>,
    inbox: Receiver<Message>,
    /// Of each thread, this one included.
    watermarks: Vec<i64>,
    /// The least of them.
    watermark: i64,
}

impl Thread {
    /// Reads its splits to their ends; answers with the number of its records.
    fn run(mut self, mut reader: Box<dyn SplitReader>, splits: Vec<Split>) -> Result<u64> {
        let mut splits = splits.into_iter();
        let (mut records, mut latest, mut sent) = (0, MIN_WATERMARK, Instant::now());
        loop {
            self.take_waiting()?;
            match block_on(reader.read())? {
                Read::Rows { batches, .. } => {
                    for (port, batch) in batches {
                        records += batch.rows() as u64;
                        latest = batch.times().iter().copied().fold(latest, i64::max);
                        if let Some(batch) = self.work.before(port, batch) {
                            self.deal_out(batch)?;
                        }
                    }
                }
                Read::Wait(time) => thread::sleep(time),
                Read::SplitFinished => match splits.next() {
                    Some(split) => reader.start(split)?,
                    None => break,
                },
            }
            if sent.elapsed() >= WATERMARK_INTERVAL {
                sent = Instant::now();
                self.announce(latest.saturating_sub(OUT_OF_ORDERNESS + 1))?;
            }
        }
        self.announce(MAX_WATERMARK)?;
        while self.watermark < MAX_WATERMARK {
            let message = self.inbox.recv().context("the other threads have gone")?;
            self.handle(message)?;
        }
        block_on(self.out.sink.finish())?;
        Ok(records)
    }

    fn deal_out(&mut self, batch: Batch) -> Result<()> {
        let threads = self.senders.len();
        let targets = if threads == 1 { None } else { self.work.targets(&batch, threads as u32) };
        let Some(targets) = targets else { return self.work.process(batch, &mut self.out) };
        for target in 0..threads {
            let rows = targets.iter().enumerate().filter(|(_, of_row)| **of_row as usize == target);
            let rows: Vec<u32> = rows.map(|(row, _)| row as u32).collect();
            self.send(target, Message::Rows(batch.take(&UInt32Array::from(rows))))?;
        }
        Ok(())
    }

    /// Tells all threads how far event time is here.
    fn announce(&mut self, watermark: i64) -> Result<()> {
        for target in 0..self.senders.len() {
            self.send(target, Message::Watermark(self.index, watermark))?;
        }
        Ok(())
    }

    fn send(&mut self, target: usize, message: Message) -> Result<()> {
        if target == self.index {
            return self.handle(message);
        }
        let mut message = message;
        loop {
            match self.senders[target].try_send(message) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Disconnected(_)) => return Err(anyhow!("thread {target} has gone")),
                Err(TrySendError::Full(back)) => message = back,
            }
            self.take_waiting()?;
            thread::yield_now();
        }
    }

    /// Deals with what has come.
    fn take_waiting(&mut self) -> Result<()> {
        loop {
            match self.inbox.try_recv() {
                Ok(message) => self.handle(message)?,
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return Ok(()),
            }
        }
    }

    fn handle(&mut self, message: Message) -> Result<()> {
        match message {
            Message::Rows(batch) => self.work.process(batch, &mut self.out),
            Message::Watermark(from, watermark) => {
                self.watermarks[from] = watermark;
                let least = self.watermarks.iter().copied().min().unwrap_or(MAX_WATERMARK);
                if least > self.watermark {
                    self.watermark = least;
                    self.work.watermark(least, &mut self.out)?;
                }
                Ok(())
            }
        }
    }
}

/// Generators and these sinks never wait.
pub(super) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut TaskContext::from_waker(Waker::noop())) {
            return output;
        }
    }
}

/// Batches and watermarks that wait before a thread.
const QUEUED: usize = 64;
/// Milliseconds by which records are out of order at most.
const OUT_OF_ORDERNESS: i64 = 1000;
const WATERMARK_INTERVAL: Duration = Duration::from_millis(200);
