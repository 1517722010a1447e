//! Workloads `q0`, `q1`, `q2` and `q5`, over bids.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use anyhow::Result;
use arrow_array::{Int64Array, TimestampMillisecondArray, cast::AsArray, types::Int64Type};
use millstream_types::{Batch, DataType, Field, MAX_WATERMARK, Schema};

use super::{
    table::{NumberMap, targets_of_column},
    work::{Out, Work},
};

/// Bids as they are.
pub(super) fn q0() -> Box<dyn Work> {
    Box::new(Q0)
}

/// Bids with their prices in another currency.
pub(super) fn q1() -> Box<dyn Work> {
    Box::new(Q1)
}

/// Auction and price of the bids for some auctions.
pub(super) fn q2() -> Box<dyn Work> {
    Box::new(Q2)
}

/// The auction with most bids of each window.
pub(super) fn q5() -> Box<dyn Work> {
    reported().threads += 1;
    Box::new(Q5::default())
}

pub(super) fn selected(_: &Schema) -> Schema {
    Schema::new(["auction", "price"].map(|name| Field::new(name, DataType::Int64)))
}

pub(super) fn hottest(_: &Schema) -> Schema {
    let number = |name: &str| Field::new(name, DataType::Int64);
    Schema::new([Field::new("window_end", DataType::Timestamp), number("auction"), number("count")])
}

struct Q0;

impl Work for Q0 {
    fn process(&mut self, batch: Batch, out: &mut Out) -> Result<()> {
        out.pass(batch)
    }
}

struct Q1;

impl Work for Q1 {
    fn process(&mut self, batch: Batch, out: &mut Out) -> Result<()> {
        let prices = batch.column(PRICE).as_primitive::<Int64Type>();
        let mut columns = batch.records().columns().to_vec();
        columns[PRICE] = Arc::new(prices.unary::<_, Int64Type>(|price| price * 908 / 1000));
        out.write(columns)
    }
}

struct Q2;

impl Work for Q2 {
    fn process(&mut self, batch: Batch, out: &mut Out) -> Result<()> {
        let column = |index: usize| batch.column(index).as_primitive::<Int64Type>().values();
        let bids = column(AUCTION).iter().zip(column(PRICE)).filter(|(auction, _)| *auction % 123 == 0);
        let (auctions, prices): (Vec<i64>, Vec<i64>) = bids.unzip();
        out.write(vec![Arc::new(Int64Array::from(auctions)), Arc::new(Int64Array::from(prices))])
    }
}

/// Bids by auction in slices of 2 seconds, five of which are a window.
#[derive(Default)]
struct Q5 {
    by_slice: BTreeMap<i64, NumberMap<i64>>,
    /// The last window that has been looked at.
    fired: Option<i64>,
}

impl Work for Q5 {
    fn targets(&self, batch: &Batch, threads: u32) -> Option<Vec<u32>> {
        Some(targets_of_column(batch, AUCTION, threads))
    }

    fn process(&mut self, batch: Batch, _out: &mut Out) -> Result<()> {
        let auctions = batch.column(AUCTION).as_primitive::<Int64Type>().values();
        let times = batch.times();
        let mut row = 0;
        while row < auctions.len() {
            let slice = times[row].div_euclid(SLIDE);
            let stop = (row..auctions.len()).find(|&at| times[at].div_euclid(SLIDE) != slice);
            let stop = stop.unwrap_or(auctions.len());
            let table = self.by_slice.entry(slice).or_default();
            for auction in &auctions[row..stop] {
                *table.entry(*auction).or_insert(0) += 1;
            }
            row = stop;
        }
        Ok(())
    }

    fn watermark(&mut self, watermark: i64, out: &mut Out) -> Result<()> {
        while let Some((&first, _)) = self.by_slice.first_key_value() {
            // A window is named by its last slice.
            let last = self.fired.map_or(first, |fired| (fired + 1).max(first));
            if (last + 1).saturating_mul(SLIDE) - 1 > watermark {
                break;
            }
            self.fired = Some(last);
            report((last + 1) * SLIDE, self.best_of(last));
            if first + SLICES - 1 <= last {
                self.by_slice.remove(&first);
            }
        }
        if watermark == MAX_WATERMARK { finish(out) } else { Ok(()) }
    }
}

impl Q5 {
    /// The auction with most bids in the window that ends with a slice; of equals the smaller one.
    fn best_of(&self, last: i64) -> Option<Best> {
        let mut counts: NumberMap<i64> = NumberMap::default();
        for table in self.by_slice.range(last + 1 - SLICES..=last).map(|(_, table)| table) {
            table.iter().for_each(|(auction, count)| *counts.entry(*auction).or_insert(0) += count);
        }
        counts.into_iter().map(|(auction, count)| (count, -auction)).max()
    }
}

/// Bids, and the auction with its sign turned, so that the greatest is the best.
type Best = (i64, i64);

/// What threads have found so far. A few rows a second, which are written at the end.
struct Reported {
    /// Those that are not at their end.
    threads: usize,
    /// The best of each window, by its end.
    best: BTreeMap<i64, Best>,
}

fn reported() -> MutexGuard<'static, Reported> {
    static REPORTED: Mutex<Reported> = Mutex::new(Reported { threads: 0, best: BTreeMap::new() });
    REPORTED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn report(end: i64, best: Option<Best>) {
    let Some(best) = best else { return };
    reported().best.entry(end).and_modify(|known| *known = best.max(*known)).or_insert(best);
}

/// The last thread writes what all have found.
fn finish(out: &mut Out) -> Result<()> {
    let mut reported = reported();
    reported.threads -= 1;
    if reported.threads > 0 {
        return Ok(());
    }
    let found = std::mem::take(&mut reported.best);
    let column = |of: fn((&i64, &Best)) -> i64| found.iter().map(of).collect::<Vec<_>>();
    let ends = TimestampMillisecondArray::from(column(|(end, _)| *end)).with_timezone("UTC");
    let auctions = Int64Array::from(column(|(_, best)| -best.1));
    let counts = Int64Array::from(column(|(_, best)| best.0));
    out.write(vec![Arc::new(ends), Arc::new(auctions), Arc::new(counts)])
}

const AUCTION: usize = 0;
const PRICE: usize = 2;
/// Milliseconds between the starts of windows.
const SLIDE: i64 = 2000;
/// Slices of a window.
const SLICES: i64 = 5;
