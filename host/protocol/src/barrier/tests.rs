//! Scripts, and every order of events of small models.

use millstream_types::BarrierKind;

use super::*;

fn barrier(id: u64, alignment: Alignment) -> Barrier {
    Barrier { id, kind: BarrierKind::Checkpoint, alignment, triggered: 0, stop: false, base: None }
}

/// Runs a script such as `0b1 1b1 0e !2` on two channels and writes down what comes out and who is blocked after each
/// step: `b` an aligned barrier, `l` one for at-least-once, `e` the end, `!` an abort.
fn run(script: &str) -> String {
    let mut aligner = Aligner::new(2);
    let step = |word: &str| {
        let channel = usize::from(word.as_bytes()[0].wrapping_sub(b'0'));
        let id = |from: usize| word[from..].parse().expect("a number");
        match &word[1..2] {
            _ if word.starts_with('!') => aligner.handle_abort(id(1)),
            "b" => aligner.handle_barrier(channel, barrier(id(2), Alignment::Aligned)),
            "l" => aligner.handle_barrier(channel, barrier(id(2), Alignment::AtLeastOnce)),
            _ => aligner.handle_end(channel),
        }
        let mut text = String::new();
        while let Some(event) = aligner.poll_event() {
            text += &match event {
                AlignmentEvent::Passed(barrier) => format!("passed {} ", barrier.id),
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

/// What a channel of a model sends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Item {
    Row,
    Barrier(u64),
    End,
}

use Item::{Barrier as B, End, Row};

/// A model at one moment: what is left on each channel, and what has come of the rest.
#[derive(Clone)]
struct Model {
    aligner: Aligner,
    next: Vec<usize>,
    /// Barriers passed so far, with the number of rows of each channel processed before.
    passed: Vec<(u64, Vec<usize>)>,
    rows: Vec<usize>,
    aborts: Vec<u64>,
}

/// Walks through every order in which channels can be read and aborts can come, and looks at each end.
fn explore(
    alignment: Alignment,
    channels: &[&[Item]],
    aborts: &[u64],
    check: &mut impl FnMut(&Model),
) -> usize {
    let count = channels.len();
    let (next, rows) = (vec![0; count], vec![0; count]);
    let start =
        Model { aligner: Aligner::new(count), next, passed: Vec::new(), rows, aborts: aborts.to_vec() };
    walk(start, alignment, channels, check)
}

fn walk(model: Model, alignment: Alignment, channels: &[&[Item]], check: &mut impl FnMut(&Model)) -> usize {
    let mut orders = 0;
    for (channel, items) in channels.iter().enumerate() {
        let at = model.next[channel];
        if at == items.len() || model.aligner.is_blocked(channel) {
            continue;
        }
        let mut model = model.clone();
        model.next[channel] += 1;
        match items[at] {
            Row => model.rows[channel] += 1,
            B(id) => model.aligner.handle_barrier(channel, barrier(id, alignment)),
            End => model.aligner.handle_end(channel),
        }
        orders += walk(drained(model), alignment, channels, check);
    }
    for i in 0..model.aborts.len() {
        let mut model = model.clone();
        let id = model.aborts.remove(i);
        model.aligner.handle_abort(id);
        orders += walk(drained(model), alignment, channels, check);
    }
    if orders == 0 {
        assert_eq!(model.next, channels.iter().map(|c| c.len()).collect::<Vec<_>>(), "a channel is stuck");
        assert!(!model.aligner.is_aligning() || alignment == Alignment::AtLeastOnce);
        check(&model);
        return 1;
    }
    orders
}

fn drained(mut model: Model) -> Model {
    while let Some(event) = model.aligner.poll_event() {
        if let AlignmentEvent::Passed(barrier) = event {
            model.passed.push((barrier.id, model.rows.clone()));
        }
    }
    model
}

/// The rows of each channel before a barrier, or before its end if it has none.
fn rows_before(id: u64, channels: &[&[Item]]) -> Vec<usize> {
    let rows = |items: &&[Item]| items.iter().take_while(|i| **i != B(id)).filter(|i| **i == Row).count();
    channels.iter().map(rows).collect()
}

#[test]
fn in_every_order_the_snapshot_has_exactly_the_rows_before_the_barrier() {
    let long: &[Item] = &[Row, B(1), Row, Row, B(2), Row];
    let models: [&[&[Item]]; 4] = [
        &[long, long],
        &[long, &[Row, B(1), Row, End]],
        &[&[Row, B(1), Row, B(2)], &[B(1), Row, B(2), Row], &[Row, B(1), B(2)]],
        &[&[Row, End], &[Row, B(1), B(2), End], &[B(1), Row, B(2), End]],
    ];
    let mut orders = 0;
    for channels in models {
        orders += explore(Alignment::Aligned, channels, &[], &mut |model| {
            let expected = [1, 2].map(|id| (id, rows_before(id, channels)));
            assert_eq!(model.passed, expected);
        });
    }
    assert!(orders > 500, "{orders} orders are no exploration");
}

#[test]
fn in_every_order_at_least_once_has_all_rows_before_the_barrier() {
    let channels: [&[Item]; 2] = [&[Row, B(1), Row, B(2), Row], &[Row, Row, B(1), B(2), Row, End]];
    explore(Alignment::AtLeastOnce, &channels, &[], &mut |model| {
        assert_eq!(model.passed.iter().map(|p| p.0).collect::<Vec<_>>(), [1, 2]);
        for (id, rows) in &model.passed {
            assert!(rows.iter().zip(rows_before(*id, &channels)).all(|(&found, before)| found >= before));
        }
    });
}

#[test]
fn in_every_order_aborted_and_left_out_barriers_hold_nobody_up() {
    let skipping: [&[Item]; 2] = [&[Row, B(1), Row, B(3)], &[Row, B(2), Row, B(3)]];
    explore(Alignment::Aligned, &skipping, &[], &mut |model| {
        assert_eq!(model.passed, [(3, rows_before(3, &skipping))]);
    });
    let both: [&[Item]; 2] = [&[Row, B(1), Row, B(2)], &[B(1), Row, B(2), End]];
    explore(Alignment::Aligned, &both, &[1], &mut |model| {
        let last = model.passed.last().expect("the second one is passed");
        assert_eq!(*last, (2, rows_before(2, &both)));
        let first = model.passed.iter().find(|p| p.0 == 1);
        assert!(first.is_none_or(|found| found.1 == rows_before(1, &both)));
    });
}
