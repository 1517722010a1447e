//! Scripts, and every order of events of small models.

use std::{collections::HashSet, time::Duration};

use millstream_types::BarrierKind;

use super::*;

fn barrier(id: u64, alignment: Alignment) -> Barrier {
    Barrier { id, kind: BarrierKind::Checkpoint, alignment, triggered: 0, stop: false, base: None }
}

/// Runs a script such as `0b1 1b1 0e !2` on two channels and writes down what comes out and who is blocked after each
/// step: `b` an aligned barrier, `l` one for at-least-once, `u` an unaligned one, `r7` a row, `a1:78` a barrier with rows
/// ahead of it, `x78` an end with rows ahead of it, `e` the end, `!` an abort, `?` that the time is over.
fn run(script: &str) -> String {
    let mut aligner: Aligner<char> = Aligner::new(2);
    let step = |word: &str| {
        let channel = usize::from(word.as_bytes()[0].wrapping_sub(b'0'));
        let id = |from: usize| word[from..].parse().expect("a number");
        match &word[1..2] {
            _ if word.starts_with('!') => aligner.handle_abort(id(1)),
            _ if word.starts_with('?') => aligner.handle_overdue(id(1)),
            "u" => aligner.handle_barrier(channel, barrier(id(2), Alignment::Unaligned)),
            "r" => aligner.handle_element(channel, &word[2..].chars().next().expect("a row")),
            "a" => {
                let (id, rows) = word[2..].split_once(':').expect("rows");
                let barrier = barrier(id.parse().expect("a number"), Alignment::Unaligned);
                aligner.handle_ahead(channel, barrier, rows.chars().collect());
            }
            "x" => aligner.handle_end_ahead(channel, &word[2..].chars().collect::<Vec<_>>()),
            "b" => aligner.handle_barrier(channel, barrier(id(2), Alignment::Aligned)),
            "l" => aligner.handle_barrier(channel, barrier(id(2), Alignment::AtLeastOnce)),
            _ => aligner.handle_end(channel),
        }
        let mut text = String::new();
        while let Some(event) = aligner.poll_event() {
            text += &match event {
                AlignmentEvent::Passed(barrier) => format!("passed {} ", barrier.id),
                AlignmentEvent::Overtakes(barrier) => format!("overtakes {} ", barrier.id),
                AlignmentEvent::Recorded { id, ahead } => {
                    let rows = ahead.iter().map(|rows| rows.iter().collect::<String>());
                    format!("recorded {id} [{}] ", rows.collect::<Vec<_>>().join(","))
                }
                AlignmentEvent::GivenUp(id) => format!("given up {id} "),
            };
        }
        (0..2).filter(|&c| aligner.is_blocked(c)).for_each(|c| text += &format!("x{c}"));
        text.trim_end().to_owned()
    };
    script.split(' ').map(step).collect::<Vec<_>>().join("|")
}

#[test]
fn a_channel_waits_behind_its_barrier_for_the_others() {
    assert_eq!(run("0b1 1b1 1b2 0b2"), "x0|passed 1|x1|passed 2");
}

#[test]
fn at_least_once_blocks_nobody_and_keeps_several_pending() {
    assert_eq!(run("0l1 0l2 1l1 1l2"), "||passed 1|passed 2");
    assert_eq!(run("0l1 0l2 1e"), "||passed 1 passed 2");
    assert_eq!(run("0l1 0b2 1l1 1b2"), "|x0|passed 1 x0|passed 2");
}

#[test]
fn an_ended_channel_has_passed_every_barrier() {
    assert_eq!(run("0b1 1e 0b2"), "x0|passed 1|passed 2");
    assert_eq!(run("1e 0b1 0e"), "|passed 1|");
}

#[test]
fn a_barrier_that_a_channel_leaves_out_is_given_up() {
    assert_eq!(run("0b1 1b2 0b2"), "x0|given up 1 x1|passed 2");
    assert_eq!(run("0l1 1l2 0l2 1l1"), "|given up 1|passed 2|");
}

#[test]
fn an_aborted_barrier_blocks_nobody_whenever_it_comes() {
    assert_eq!(run("0b1 !1 1b1 0b2 1b2"), "x0|||x0|passed 2");
    assert_eq!(run("!2 0b1 1b1 0b2 1b2 1b3 0b3"), "|x0|passed 1|||x1|passed 3");
}

#[test]
fn an_unaligned_barrier_records_what_others_have_ahead_of_it() {
    assert_eq!(run("0r1 0u1 0r2 1r3 1r4 1u1 1r5"), "|overtakes 1||||recorded 1 [,34]|");
    assert_eq!(run("0a1:12 0r1 1r3 1a1:45 1r4"), "overtakes 1|||recorded 1 [12,345]|");
    assert_eq!(run("0u1 1r3 1e"), "overtakes 1||recorded 1 [,3]");
    assert_eq!(run("0u1 1r3 1x45 1r4 1e"), "overtakes 1||recorded 1 [,345]||");
    assert_eq!(run("1e 0u1"), "|overtakes 1 recorded 1 [,]");
}

#[test]
fn a_barrier_whose_time_is_over_blocks_nobody_any_more() {
    assert_eq!(run("0b1 ?1 0r2 1r3 1b1"), "x0|overtakes 1|||recorded 1 [,3]");
    assert_eq!(run("?1 0b1 1b1"), "|x0|passed 1");
    assert_eq!(run("0b1 1a1:34"), "x0|overtakes 1 recorded 1 [,34]");
}

#[test]
fn a_barrier_does_not_overtake_one_that_is_being_aligned() {
    assert_eq!(run("0b1 1b1 0u2 1b2"), "x0|passed 1|overtakes 2|recorded 2 [,]");
    assert_eq!(run("0b1 0u2 1r3 1b1 1r4 1u2"), "x0|x0|x0|passed 1 overtakes 2||recorded 2 [,4]");
    assert_eq!(run("0b1 0u2 !1 1r4 1u2"), "x0|x0|overtakes 2||recorded 2 [,4]");
    assert_eq!(run("0u1 0u2 1r3 1u1 1r4 1u2"), "overtakes 1|overtakes 2||recorded 1 [,3]||recorded 2 [,34]");
}

#[test]
fn what_is_recorded_for_a_barrier_that_is_given_up_is_forgotten() {
    assert_eq!(run("0u1 1r3 !1 1u1 0u2 1r4 1u2"), "overtakes 1||||overtakes 2||recorded 2 [,4]");
    assert_eq!(run("0u1 1r3 1u2 0r5 0u2"), "overtakes 1||given up 1 overtakes 2||recorded 2 [5,]");
}

/// What a channel of a model sends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Item {
    Row,
    Barrier(u64),
    End,
}

use Item::{Barrier as B, End, Row};

/// What happens in a model.
#[derive(Clone, Debug)]
struct Plan<'a> {
    alignment: Alignment,
    channels: &'a [&'a [Item]],
    /// Barriers that are given up at some time.
    aborts: &'a [u64],
    /// Barriers whose time is over at some time, in this order.
    overdue: &'a [u64],
    /// A barrier that everybody has been told of.
    announced: Option<u64>,
}

/// A model at one moment: what is left on each channel, and what has come of the rest. A row is its position on its
/// channel.
#[derive(Clone, Debug)]
struct Model {
    aligner: Aligner<usize>,
    next: Vec<usize>,
    /// Items that have been taken before their turn.
    taken: Vec<Vec<usize>>,
    /// Barriers at which there has been a snapshot, with the rows of each channel processed before.
    snapshots: Vec<(u64, Vec<Vec<usize>>)>,
    /// Barriers of which everything is there: the rows that were processed, and those that were recorded behind them.
    complete: Vec<(u64, Vec<Vec<usize>>)>,
    rows: Vec<Vec<usize>>,
    aborts: Vec<u64>,
    overdue: usize,
}

impl Plan<'_> {
    /// Walks through every order in which channels can be read and looked into, aborts can come and time can be over, and
    /// looks at each end. Moments that are the same in every respect are looked at once.
    fn explore(&self, check: &mut impl FnMut(&Model)) -> usize {
        let count = self.channels.len();
        let start = Model {
            aligner: Aligner::new(count),
            next: vec![0; count],
            taken: vec![Vec::new(); count],
            snapshots: Vec::new(),
            complete: Vec::new(),
            rows: vec![Vec::new(); count],
            aborts: self.aborts.to_vec(),
            overdue: 0,
        };
        let (mut seen, mut open, mut ends) = (HashSet::new(), vec![start], 0);
        while let Some(model) = open.pop() {
            if !seen.insert(format!("{model:?}")) {
                continue;
            }
            let next = self.steps(&model);
            if next.is_empty() {
                self.at_the_end(&model);
                check(&model);
                ends += 1;
            }
            open.extend(next);
        }
        ends
    }

    fn steps(&self, model: &Model) -> Vec<Model> {
        let mut next = Vec::new();
        for channel in 0..self.channels.len() {
            next.extend(self.receive(model, channel));
            next.extend(self.look_ahead(model, channel));
        }
        for (at, &id) in model.aborts.iter().enumerate() {
            let mut model = model.clone();
            model.aborts.remove(at);
            model.aligner.handle_abort(id);
            next.push(drained(model));
        }
        next.extend(self.trigger(model));
        if let Some(&id) = self.overdue.get(model.overdue) {
            let mut model = model.clone();
            model.overdue += 1;
            model.aligner.handle_overdue(id);
            next.push(drained(model));
        }
        next
    }

    fn receive(&self, model: &Model, channel: usize) -> Option<Model> {
        let mut model = model.clone();
        while model.taken[channel].contains(&model.next[channel]) {
            model.next[channel] += 1;
        }
        let at = model.next[channel];
        let item = self.channels[channel].get(at).filter(|_| !model.aligner.is_blocked(channel))?;
        model.next[channel] += 1;
        match *item {
            Row => {
                model.aligner.handle_element(channel, &at);
                model.rows[channel].push(at);
            }
            B(id) => model.aligner.handle_barrier(channel, barrier(id, self.alignment)),
            End => model.aligner.handle_end(channel),
        }
        Some(drained(model))
    }

    /// Takes the first barrier of a channel before its turn if it may overtake, or sees that none will come.
    fn look_ahead(&self, model: &Model, channel: usize) -> Option<Model> {
        let (ahead, found) = self.first_ahead(model, channel);
        let mut model = model.clone();
        match self.channels[channel][found?] {
            B(id) if self.is_due(&model, id) && model.aligner.may_overtake(id) => {
                model.taken[channel].extend(found);
                model.aligner.handle_ahead(channel, barrier(id, Alignment::Unaligned), ahead);
            }
            B(id) if model.aligner.is_over(id) => model.taken[channel].extend(found),
            End if model.aligner.is_recording(channel) => {
                model.aligner.handle_end_ahead(channel, &ahead);
            }
            _ => return None,
        }
        Some(drained(model))
    }

    /// The rows of a channel up to its next barrier or end, and where that is.
    fn first_ahead(&self, model: &Model, channel: usize) -> (Vec<usize>, Option<usize>) {
        let items = self.channels[channel];
        let left = (model.next[channel]..items.len()).filter(|at| !model.taken[channel].contains(at));
        let mut ahead = Vec::new();
        for at in left {
            if items[at] != Row {
                return (ahead, Some(at));
            }
            ahead.push(at);
        }
        (ahead, None)
    }

    /// Has a barrier overtake that all channels end before.
    fn trigger(&self, model: &Model) -> Option<Model> {
        let id = self.announced?;
        let ends = |channel: usize| match self.first_ahead(model, channel) {
            (_, Some(at)) => self.channels[channel][at] == End,
            (_, None) => true,
        };
        let open = !model.aligner.is_over(id) && !model.aligner.is_pending(id);
        let ended = (0..self.channels.len()).all(|channel| self.first_ahead(model, channel).1.is_none());
        if !open || ended || !self.is_due(model, id) || !(0..self.channels.len()).all(ends) {
            return None;
        }
        let mut model = model.clone();
        model.aligner.handle_absent(barrier(id, self.alignment));
        Some(drained(model))
    }

    fn is_due(&self, model: &Model, id: u64) -> bool {
        self.alignment == Alignment::Unaligned
            || self.overdue[..model.overdue].contains(&id)
            || model.aligner.has_overtaken(id)
    }

    fn at_the_end(&self, model: &Model) {
        let all = |at: usize| (model.next[at]..self.channels[at].len()).all(|i| model.taken[at].contains(&i));
        assert!((0..self.channels.len()).all(all), "a channel is stuck");
        assert!(!model.aligner.is_aligning() || self.alignment == Alignment::AtLeastOnce);
    }

    /// The rows of each channel before a barrier, or before its end if it has none.
    fn rows_before(&self, id: u64) -> Vec<Vec<usize>> {
        let rows = |items: &&[Item]| {
            let before = items.iter().take_while(|i| **i != B(id)).enumerate();
            before.filter(|(_, i)| **i == Row).map(|(at, _)| at).collect()
        };
        self.channels.iter().map(rows).collect()
    }

    /// That those of which everything is there have exactly what is before them.
    fn assert_exact(&self, model: &Model) {
        for (id, rows) in &model.complete {
            assert_eq!(*rows, self.rows_before(*id), "barrier {id}");
        }
    }
}

fn drained(mut model: Model) -> Model {
    while let Some(event) = model.aligner.poll_event() {
        match event {
            AlignmentEvent::Passed(barrier) => model.complete.push((barrier.id, model.rows.clone())),
            AlignmentEvent::Overtakes(barrier) => model.snapshots.push((barrier.id, model.rows.clone())),
            AlignmentEvent::Recorded { id, ahead } => {
                let found = model.snapshots.iter().find(|(of, _)| *of == id).expect("it has overtaken");
                let mut rows = found.1.clone();
                rows.iter_mut().zip(ahead).for_each(|(rows, ahead)| rows.extend(ahead));
                model.complete.push((id, rows));
            }
            AlignmentEvent::GivenUp(_) => {}
        }
    }
    model
}

fn complete(model: &Model) -> Vec<u64> {
    model.complete.iter().map(|(id, _)| *id).collect()
}

const LONG: &[Item] = &[Row, B(1), Row, Row, B(2), Row];

const MODELS: [&[&[Item]]; 5] = [
    &[LONG],
    &[LONG, LONG],
    &[LONG, &[Row, B(1), Row, End]],
    &[&[Row, B(1), Row, B(2)], &[B(1), Row, B(2), Row], &[Row, B(1), B(2)]],
    &[&[Row, End], &[Row, B(1), B(2), End], &[B(1), Row, B(2), End]],
];

#[test]
fn in_every_order_the_snapshot_has_exactly_the_rows_before_the_barrier() {
    let week = Alignment::AlignedFor(Duration::from_secs(604_800));
    let mut ends = 0;
    for channels in MODELS {
        for (alignment, overdue) in
            [(Alignment::Aligned, &[][..]), (week, &[1, 2]), (week, &[1]), (Alignment::Unaligned, &[])]
        {
            let plan = Plan { alignment, channels, aborts: &[], overdue, announced: None };
            ends += plan.explore(&mut |model| {
                assert_eq!(complete(model), [1, 2], "{alignment:?}");
                plan.assert_exact(model);
            });
        }
    }
    assert!(ends > 500, "{ends} ends are no exploration");
}

#[test]
fn in_every_order_an_aborted_barrier_costs_the_next_one_nothing() {
    let week = Alignment::AlignedFor(Duration::from_secs(604_800));
    for channels in MODELS {
        for (alignment, overdue) in
            [(Alignment::Aligned, &[][..]), (week, &[1, 2]), (Alignment::Unaligned, &[])]
        {
            let plan = Plan { alignment, channels, aborts: &[1], overdue, announced: None };
            plan.explore(&mut |model| {
                assert_eq!(complete(model).last(), Some(&2));
                plan.assert_exact(model);
            });
        }
    }
}

#[test]
fn in_every_order_barriers_that_are_left_out_hold_nobody_up() {
    let channels: [&[Item]; 2] = [&[Row, B(1), Row, B(3)], &[Row, B(2), Row, B(3)]];
    for alignment in [Alignment::Aligned, Alignment::Unaligned] {
        let plan = Plan { alignment, channels: &channels, aborts: &[], overdue: &[], announced: None };
        plan.explore(&mut |model| {
            assert_eq!(complete(model), [3]);
            plan.assert_exact(model);
        });
    }
}

#[test]
fn in_every_order_at_least_once_has_all_rows_before_the_barrier() {
    let channels: [&[Item]; 2] = [&[Row, B(1), Row, B(2), Row], &[Row, Row, B(1), B(2), Row, End]];
    let plan = Plan {
        alignment: Alignment::AtLeastOnce,
        channels: &channels,
        aborts: &[],
        overdue: &[],
        announced: None,
    };
    plan.explore(&mut |model| {
        assert_eq!(complete(model), [1, 2]);
        for (id, rows) in &model.complete {
            let before = plan.rows_before(*id);
            assert!(rows.iter().zip(before).all(|(found, before)| found.starts_with(&before)));
        }
    });
}

#[test]
fn in_every_order_a_barrier_that_all_channels_end_before_has_everything() {
    let models: [&[&[Item]]; 3] = [
        &[&[Row, Row, End], &[Row, End]],
        &[&[Row, End], &[Row, B(1), Row, End]],
        &[&[Row, B(1), Row, End], &[Row, Row, B(1), Row, End], &[Row, End]],
    ];
    let mut found = 0;
    for channels in models {
        for announced in [1, 2] {
            let (alignment, announced) = (Alignment::Unaligned, Some(announced));
            let plan = Plan { alignment, channels, aborts: &[], overdue: &[], announced };
            plan.explore(&mut |model| {
                plan.assert_exact(model);
                found += usize::from(complete(model).contains(&2));
            });
        }
    }
    assert!(found > 20, "{found}");
}
