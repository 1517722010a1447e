//! One function in several versions, each of which keeps other columns: what a restore makes of them.

use millstream::{Collector, Function, Input, ListState, Output, ProcessContext, State, ValueState};

/// What all of them read of a row.
#[derive(Input)]
pub struct Row<'a> {
    /// What is kept besides.
    pub note: &'a str,
}

/// What all of them make of a row.
#[derive(Output)]
pub struct Counted {
    /// Rows of the key so far.
    pub rows: i64,
}

/// What the first version keeps.
#[derive(State)]
pub struct FirstCount {
    rows: i32,
    note: String,
}

/// Counts rows.
#[derive(Function)]
pub struct First {
    counts: ValueState<FirstCount>,
    notes: ListState<String>,
}

/// Counts rows, and keeps their notes.
#[millstream::process]
impl First {
    fn process(&mut self, _key: &str, row: Row<'_>, ctx: &mut ProcessContext, out: &mut Collector<Counted>) {
        let count = self.counts.get_or_insert_with(|| FirstCount { rows: 0, note: String::new() });
        count.rows += 1;
        count.note = row.note.to_owned();
        out.emit(Counted { rows: count.rows.into() });
        self.notes.add(row.note.to_owned());
        ctx.set_timer(FAR);
    }

    fn on_timer(&mut self, _key: &str, _timer: millstream::Timer, _out: &mut Collector<Counted>) {}
}

/// What the host can make of [`FirstCount`]: a wider number, a new column that may be null, and one column less.
#[derive(State)]
pub struct WiderCount {
    seen: Option<i64>,
    rows: i64,
}

/// Counts more rows.
#[derive(Function)]
pub struct Wider {
    counts: ValueState<WiderCount>,
    notes: ListState<String>,
}

/// Counts rows and goes on from what [`First`] has counted.
#[millstream::process]
impl Wider {
    fn process(&mut self, _key: &str, row: Row<'_>, out: &mut Collector<Counted>) {
        let count = self.counts.get_or_insert_with(|| WiderCount { seen: None, rows: 0 });
        count.rows += 1;
        count.seen = Some(count.seen.unwrap_or(0) + 1);
        out.emit(Counted { rows: count.rows });
        self.notes.add(row.note.to_owned());
    }

    fn on_timer(&mut self, _key: &str, _timer: millstream::Timer, _out: &mut Collector<Counted>) {}
}

/// What nobody can make of [`FirstCount`] without being told how.
#[derive(State)]
pub struct OtherCount {
    rows: String,
}

/// Counts in another way.
#[derive(Function)]
pub struct Other {
    counts: ValueState<OtherCount>,
    notes: ListState<String>,
}

/// Counts rows in text.
#[millstream::process]
impl Other {
    fn process(&mut self, _key: &str, row: Row<'_>, out: &mut Collector<Counted>) {
        let count = self.counts.get_or_insert_with(|| OtherCount { rows: String::new() });
        count.rows.push('I');
        out.emit(Counted { rows: count.rows.len() as i64 });
        self.notes.add(row.note.to_owned());
    }
}

/// The same, by a module that says how.
#[derive(State, Debug, PartialEq)]
#[state(version = 2, migrates(1))]
pub struct MigratedCount {
    rows: String,
    note: Option<String>,
}

/// A stroke for each row.
#[millstream::migrate(from = 1)]
fn strokes(first: FirstCount) -> MigratedCount {
    MigratedCount { rows: "I".repeat(first.rows as usize), note: Some(first.note) }
}

/// Counts in strokes.
#[derive(Function)]
pub struct Migrated {
    counts: ValueState<MigratedCount>,
    notes: ListState<String>,
}

/// Counts rows in strokes and goes on from what [`First`] has counted.
#[millstream::process]
impl Migrated {
    fn process(&mut self, _key: &str, row: Row<'_>, out: &mut Collector<Counted>) {
        let count = self.counts.get_or_insert_with(|| MigratedCount { rows: String::new(), note: None });
        count.rows.push('I');
        out.emit(Counted { rows: count.rows.len() as i64 });
        self.notes.add(row.note.to_owned());
    }
}

/// Counts nothing.
#[derive(Function)]
pub struct Without {
    notes: ListState<String>,
}

/// Keeps notes only.
#[millstream::process]
impl Without {
    fn process(&mut self, _key: &str, row: Row<'_>, out: &mut Collector<Counted>) {
        self.notes.add(row.note.to_owned());
        out.emit(Counted { rows: 0 });
    }

    fn on_timer(&mut self, _key: &str, _timer: millstream::Timer, _out: &mut Collector<Counted>) {}
}

/// What sums read of a row.
#[derive(Input)]
pub struct Number {
    /// What is added.
    pub n: i64,
}

/// What sums say in the end.
#[derive(Output)]
pub struct Summed {
    /// The sum.
    pub sum: f64,
}

/// What the first version of a sum keeps.
#[derive(State, Default)]
pub struct FirstSum {
    sum: i64,
}

/// Adds numbers.
#[derive(Function)]
pub struct Sum {}

/// Adds numbers up.
#[millstream::aggregate]
impl Sum {
    fn accumulate(&self, sum: &mut FirstSum, row: Number) {
        sum.sum += row.n;
    }

    fn finish(&self, sum: &FirstSum) -> Summed {
        Summed { sum: sum.sum as f64 }
    }
}

/// What its second version keeps.
#[derive(State, Default)]
#[state(version = 2, migrates(1))]
pub struct SecondSum {
    halves: f64,
}

/// Twice as many halves.
#[millstream::migrate(from = 1)]
fn halves(first: FirstSum) -> SecondSum {
    SecondSum { halves: first.sum as f64 * 2.0 }
}

/// Adds halves.
#[derive(Function)]
pub struct SumOfHalves {}

/// Adds numbers up by their halves.
#[millstream::aggregate]
impl SumOfHalves {
    fn accumulate(&self, sum: &mut SecondSum, row: Number) {
        sum.halves += row.n as f64 * 2.0;
    }

    fn finish(&self, sum: &SecondSum) -> Summed {
        Summed { sum: sum.halves / 2.0 }
    }
}

/// A time at which no test is.
const FAR: i64 = 4_000_000_000_000;

millstream::module! {
    name: "evolution",
    functions: [First, Wider, Other, Migrated, Without, Sum, SumOfHalves],
}

#[cfg(test)]
mod tests {
    use millstream::{Migrate, State};

    use super::*;

    #[test]
    fn a_version_is_taken_over_by_the_function_that_says_so() {
        let migrated = MigratedCount::migrate(FirstCount { rows: 3, note: "last".into() });
        assert_eq!(migrated, MigratedCount { rows: "III".into(), note: Some("last".into()) });
        let versions: Vec<_> = MigratedCount::migrations().iter().map(|migration| migration.from).collect();
        assert_eq!((MigratedCount::VERSION, versions), (2, vec![1]));
        assert!(FirstCount::migrations().is_empty());
    }
}
