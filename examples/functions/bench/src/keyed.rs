//! Workloads `window` and `process`: numbers by key.

use millstream::{Collector, Function, Input, Output, ProcessContext, State, Timer, ValueState};

/// What is read of a record of `window`.
#[derive(Input)]
pub struct Value {
    value: i64,
}

/// Accumulator of a key's window.
#[derive(State)]
pub struct Stats {
    count: i64,
    sum: i64,
    max: i64,
}

/// What is made of it.
#[derive(Output, Debug, PartialEq)]
pub struct Summary {
    count: i64,
    sum: i64,
    max: i64,
}

/// Counts, adds up and finds the greatest.
#[derive(Function)]
pub struct WindowStats {}

/// Count, sum and maximum of a group.
#[millstream::aggregate(name = "window")]
impl WindowStats {
    fn create(&self) -> Stats {
        Stats { count: 0, sum: 0, max: i64::MIN }
    }

    fn accumulate(&self, stats: &mut Stats, record: Value) {
        stats.count += 1;
        stats.sum = stats.sum.wrapping_add(record.value);
        stats.max = stats.max.max(record.value);
    }

    fn merge(&self, into: &mut Stats, other: Stats) {
        into.count += other.count;
        into.sum = into.sum.wrapping_add(other.sum);
        into.max = into.max.max(other.max);
    }

    fn finish(&self, stats: &Stats) -> Summary {
        Summary { count: stats.count, sum: stats.sum, max: stats.max }
    }
}

/// What is read of a record of `process`.
#[derive(Input)]
pub struct Record {
    ts: i64,
}

/// A key's count when its timer fired.
#[derive(Output, Debug, PartialEq)]
pub struct Counted {
    key: i64,
    count: i64,
}

/// Counts a key's records until 30 seconds after the first one.
#[derive(Function)]
pub struct CountWithTimer {
    count: ValueState<i64>,
}

/// Emits a key's count 30 seconds after its first record, and starts anew.
#[millstream::process(name = "process")]
impl CountWithTimer {
    fn process(&mut self, _key: (), record: Record, ctx: &mut ProcessContext) {
        match self.count.get_mut() {
            Some(count) => *count += 1,
            None => {
                ctx.set_timer(record.ts + 30_000);
                self.count.set(1);
            }
        }
    }

    fn on_timer(&mut self, key: i64, _timer: Timer, out: &mut Collector<Counted>) {
        if let Some(count) = self.count.take() {
            out.emit(Counted { key, count });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream::testing;

    #[test]
    fn windows_are_summed_up() {
        let records = [(1i64, 5), (2, -1), (1, 7)].map(|(key, value)| (key, Value { value }));
        let results = testing::aggregate::<WindowStats>().merged_from(2).run(records);
        let summaries = [Summary { count: 2, sum: 12, max: 7 }, Summary { count: 1, sum: -1, max: -1 }];
        assert_eq!(results.rows::<Summary>(), summaries);
    }

    #[test]
    fn a_count_is_emitted_when_its_timer_fires_and_starts_anew() {
        let mut test = testing::process::<CountWithTimer>().batches_of(2);
        test.rows([(1i64, 100), (2, 200), (1, 300)].map(|(key, ts)| (key, Record { ts })));
        assert_eq!(test.watermark(30_100).rows::<Counted>(), [Counted { key: 1, count: 2 }]);
        test.rows([(1i64, Record { ts: 40_000 })]);
        let rest = test.end_of_input();
        assert_eq!(rest.rows::<Counted>(), [Counted { key: 1, count: 1 }, Counted { key: 2, count: 1 }]);
    }
}
