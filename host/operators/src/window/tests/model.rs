//! Random streams against a model that keeps every row and thinks of one at a time.

use std::collections::BTreeMap;

use millstream_types::Window;
use proptest::prelude::*;

use super::support::{Setup, run, run_restored};
use crate::{Trigger, WindowAssigner};

/// What a stream sends.
#[derive(Clone, Debug)]
enum Step {
    /// Rows: time, key, value.
    Rows(Vec<(i64, u8, i64)>),
    Watermark(i64),
}

/// All rows of each (window, key), in order of arrival.
#[derive(Default)]
struct Model {
    windows: BTreeMap<(i64, i64, u8), Vec<(i64, i64)>>,
    watermark: Option<i64>,
    late: usize,
}

impl Model {
    /// The lines that a step brings, sorted, as keys of a window come in no order.
    fn step(&mut self, setup: &Setup, step: &Step) -> Vec<String> {
        let mut lines = match step {
            Step::Rows(rows) => self.rows(setup, rows),
            Step::Watermark(watermark) => self.advance(setup, *watermark),
        };
        lines.sort();
        lines
    }

    fn rows(&mut self, setup: &Setup, rows: &[(i64, u8, i64)]) -> Vec<String> {
        let mut late_firings = Vec::new();
        for &(time, key, value) in rows {
            let mut taken = false;
            for window in windows_of(setup.assigner, time) {
                let Some((window, mut rows)) = self.place(setup, window, key) else { continue };
                taken = true;
                rows.push((time, value));
                self.windows.insert((window.end, window.start, key), rows);
                if self.watermark.is_some_and(|w| window.max_time() <= w) {
                    late_firings.push((window.end, window.start, key));
                }
            }
            self.late += usize::from(!taken);
        }
        late_firings.sort_unstable();
        late_firings.dedup();
        // A session that a later row of the batch has made longer fires as what it has become.
        let windows = late_firings.iter().filter_map(|at| self.windows.get(at).map(|rows| (at, rows)));
        windows.map(|(at, rows)| line(setup, *at, rows)).collect()
    }

    /// The window that a row goes into with what it holds, or nothing if it is late for it.
    fn place(&mut self, setup: &Setup, window: Window, key: u8) -> Option<(Window, Vec<(i64, i64)>)> {
        let mut cover = window;
        let mut touched = Vec::new();
        if is_session(setup) {
            while let Some(&at) = self
                .windows
                .keys()
                .find(|at| at.2 == key && !touched.contains(*at) && Window::new(at.1, at.0).touches(&cover))
            {
                cover = cover.cover(&Window::new(at.1, at.0));
                touched.push(at);
            }
        } else {
            touched.extend(self.windows.contains_key(&(window.end, window.start, key)).then_some((
                window.end,
                window.start,
                key,
            )));
        }
        if self.watermark.is_some_and(|w| cover.max_time() + setup.lateness <= w) {
            return None;
        }
        let rows = touched.iter().flat_map(|at| self.windows.remove(at).unwrap_or_default()).collect();
        Some((cover, rows))
    }

    fn advance(&mut self, setup: &Setup, watermark: i64) -> Vec<String> {
        let due = |end: i64| end - 1 <= watermark && self.watermark.is_none_or(|before| end - 1 > before);
        let fired = self.windows.iter().filter(|(at, _)| due(at.0));
        let lines = fired.map(|(at, rows)| line(setup, *at, rows)).collect();
        self.watermark = Some(watermark);
        self.windows.retain(|at, _| at.0 - 1 + setup.lateness > watermark);
        lines
    }
}

fn is_session(setup: &Setup) -> bool {
    matches!(setup.assigner, WindowAssigner::Session { .. })
}

fn windows_of(assigner: WindowAssigner, time: i64) -> Vec<Window> {
    let starting = |size: i64, slide: i64, offset: i64| {
        let starts = (time - size + 1..=time).filter(move |start| (start - offset).rem_euclid(slide) == 0);
        starts.map(move |start| Window::new(start, start + size)).collect()
    };
    match assigner {
        WindowAssigner::Tumbling { size, offset } => starting(size, size, offset),
        WindowAssigner::Sliding { size, slide, offset } => starting(size, slide, offset),
        WindowAssigner::Session { gap } => vec![Window::new(time, time + gap)],
        WindowAssigner::Global => vec![Window::GLOBAL],
    }
}

fn line(setup: &Setup, (end, start, key): (i64, i64, u8), rows: &[(i64, i64)]) -> String {
    let made = if setup.contents {
        let mut values: Vec<String> = rows.iter().map(|(time, value)| format!("{value}@{time}")).collect();
        if is_session(setup) {
            values.sort();
        }
        values.join(",")
    } else {
        format!("{} {}", rows.len(), rows.iter().map(|(_, value)| value).sum::<i64>())
    };
    format!("0: @{} k{key} {start} {end} {made}", end - 1)
}

/// The operator's output by step, sorted, and how many rows it has dropped.
fn operator(setup: &Setup, steps: &[Step], restored: bool) -> (Vec<Vec<String>>, usize) {
    let script: Vec<String> = steps.iter().map(text).collect();
    let script: Vec<&str> = script.iter().map(String::as_str).collect();
    let output = if restored { run_restored(setup, &script) } else { run(setup.clone(), &script) };
    let mut lines: Vec<Vec<String>> = Vec::new();
    let mut late = 0;
    for line in output.lines() {
        if let Some(row) = line.strip_prefix("    ") {
            let rows = lines.last_mut().expect("output belongs to a step");
            rows.extend((!row.starts_with("watermark")).then(|| in_order(setup, row)));
        } else if let Some(count) = line.strip_prefix("late dropped: ") {
            late = count.parse().expect("a number");
        } else {
            lines.push(Vec::new());
        }
    }
    lines.iter_mut().for_each(|step| step.sort());
    (lines, late)
}

/// A line with the contents of its window in order: sessions that are merged have them in no order.
fn in_order(setup: &Setup, row: &str) -> String {
    let Some((front, values)) = row.rsplit_once(' ').filter(|_| setup.contents && is_session(setup)) else {
        return row.to_owned();
    };
    let mut values: Vec<&str> = values.split(',').collect();
    values.sort_unstable();
    format!("{front} {}", values.join(","))
}

fn text(step: &Step) -> String {
    match step {
        Step::Rows(rows) => {
            rows.iter().map(|(t, k, v)| format!("@{t} k{k} {v}")).collect::<Vec<_>>().join("; ")
        }
        Step::Watermark(watermark) => format!("watermark {watermark}"),
    }
}

/// Rows around a time that moves on, with a watermark now and then that is a little behind it.
fn stream() -> impl Strategy<Value = Vec<Step>> {
    let rows = prop::collection::vec((-30i64..30, 0u8..4, 0i64..100), 1..12);
    prop::collection::vec((rows, 0i64..25, any::<bool>()), 1..25).prop_map(|batches| {
        let (mut steps, mut now, mut watermark) = (Vec::new(), 0, i64::MIN);
        for (rows, passed, sends_watermark) in batches {
            now += passed;
            steps.push(Step::Rows(rows.into_iter().map(|(t, k, v)| (now + t, k, v)).collect()));
            if sends_watermark {
                watermark = watermark.max(now - 10);
                steps.push(Step::Watermark(watermark));
            }
        }
        steps.push(Step::Watermark(now + 10_000));
        steps
    })
}

/// Two keys with rows in most slices.
fn dense_stream() -> impl Strategy<Value = Vec<Step>> {
    let rows = prop::collection::vec((-6i64..6, 0u8..2, 0i64..100), 6..14);
    prop::collection::vec((rows, 0i64..4), 20..50).prop_map(|batches| {
        let (mut steps, mut now) = (Vec::new(), 0);
        for (rows, passed) in batches {
            now += passed;
            steps.push(Step::Rows(rows.into_iter().map(|(t, k, v)| (now + t, k, v)).collect()));
            steps.push(Step::Watermark(now - 5));
        }
        steps.push(Step::Watermark(now + 10_000));
        steps
    })
}

fn setups() -> impl Strategy<Value = Setup> {
    let tumbling = (1i64..20, -5i64..5).prop_map(|(size, offset)| WindowAssigner::Tumbling { size, offset });
    let sliding = (1i64..20, 1i64..20, -5i64..5);
    let sliding = sliding.prop_map(|(size, slide, offset)| WindowAssigner::Sliding { size, slide, offset });
    let session = (1i64..20).prop_map(|gap| WindowAssigner::Session { gap });
    let assigner = prop_oneof![tumbling, sliding, session];
    let lateness = prop_oneof![Just(0i64), 1i64..30];
    (assigner, lateness, any::<bool>(), 1usize..6).prop_map(|(assigner, lateness, contents, fired_rows)| {
        Setup { lateness, contents, fired_rows, trigger: Trigger::AtEnd, ..Setup::new(assigner) }
    })
}

fn agree(setup: &Setup, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut model = Model::default();
    let expected: Vec<Vec<String>> = steps.iter().map(|step| model.step(setup, step)).collect();
    for restored in [false, true] {
        let (found, late) = operator(setup, steps, restored);
        for ((step, expected), found) in steps.iter().zip(&expected).zip(found) {
            prop_assert_eq!(&found, expected, "at {:?}, restored: {}", step, restored);
        }
        if !gaps(setup.assigner) {
            prop_assert_eq!(late, model.late);
        }
    }
    Ok(())
}

/// Rows in gaps are in no window without being late.
fn gaps(assigner: WindowAssigner) -> bool {
    matches!(assigner, WindowAssigner::Sliding { size, slide, .. } if slide > size)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn windows_hold_what_the_model_holds(setup in setups(), steps in stream()) {
        agree(&setup, &steps)?;
    }

    #[test]
    fn windows_that_share_merged_slices_hold_what_the_model_holds(
        size in 8i64..24, slide in 1i64..3, lateness in 0i64..4, fired_rows in 1usize..6, steps in dense_stream(),
    ) {
        agree(&Setup { lateness, fired_rows, ..Setup::sliding(size, slide) }, &steps)?;
    }
}
