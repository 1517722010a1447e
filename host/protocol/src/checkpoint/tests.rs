//! Scripts in virtual time, and properties over orders of events.

use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn settings() -> CheckpointSettings {
    CheckpointSettings { interval: 10 * SECOND, timeout: 30 * SECOND, ..CheckpointSettings::default() }
}

/// Two subtasks and an enumerator.
fn coordinator(settings: CheckpointSettings) -> CheckpointCoordinator {
    let participants = Participants { subtasks: 2, enumerators: 1 };
    CheckpointCoordinator::new(settings, participants, 1, Duration::ZERO)
}

/// The actions as text.
fn actions(coordinator: &mut CheckpointCoordinator) -> String {
    let text = |action| match action {
        CheckpointAction::Trigger { id, kind: BarrierKind::Savepoint, stop: false } => {
            format!("trigger savepoint {id}")
        }
        CheckpointAction::Trigger { id, stop, .. } => {
            format!("trigger {id}{}", if stop { " and stop" } else { "" })
        }
        CheckpointAction::Store { id } => format!("store {id}"),
        CheckpointAction::Complete { id, last, .. } => {
            format!("complete {id}{}", if last { " last" } else { "" })
        }
        CheckpointAction::Abort { id, failure } => format!("abort {id}: {failure}"),
        CheckpointAction::Fail { id, .. } => format!("fail {id}"),
    };
    std::iter::from_fn(|| coordinator.poll_action()).map(text).collect::<Vec<_>>().join(", ")
}

fn at(coordinator: &mut CheckpointCoordinator, seconds: u32) -> String {
    coordinator.handle_timeout(seconds * SECOND);
    actions(coordinator)
}

fn acknowledge(coordinator: &mut CheckpointCoordinator, id: u64, seconds: u32) -> String {
    (0..3).for_each(|participant| coordinator.handle_acknowledged(id, participant, seconds * SECOND));
    actions(coordinator)
}

fn stored(coordinator: &mut CheckpointCoordinator, id: u64, seconds: u32) -> String {
    coordinator.handle_stored(id, Ok(()), seconds * SECOND);
    actions(coordinator)
}

#[test]
fn a_checkpoint_is_complete_once_all_have_acknowledged_and_it_is_stored() {
    let mut c = coordinator(settings());
    assert_eq!(c.poll_timeout(), Some(10 * SECOND));
    assert_eq!(at(&mut c, 9), "");
    assert_eq!(at(&mut c, 10), "trigger 1");
    c.handle_acknowledged(1, 0, 11 * SECOND);
    c.handle_acknowledged(1, 0, 11 * SECOND);
    c.handle_acknowledged(1, 2, 11 * SECOND);
    assert_eq!(actions(&mut c), "");
    c.handle_acknowledged(1, 1, 12 * SECOND);
    assert_eq!(actions(&mut c), "store 1");
    assert_eq!(c.poll_timeout(), None, "only the store is waited for");
    assert_eq!(stored(&mut c, 1, 13), "complete 1");
    assert_eq!(c.poll_timeout(), Some(20 * SECOND));
}

#[test]
fn the_next_one_waits_for_room_and_for_the_pause() {
    let mut c = coordinator(settings());
    at(&mut c, 10);
    assert_eq!(at(&mut c, 25), "", "one at a time");
    acknowledge(&mut c, 1, 26);
    assert_eq!(stored(&mut c, 1, 26), "complete 1, trigger 2");
    let mut c = coordinator(CheckpointSettings { min_pause: 5 * SECOND, max_concurrent: 2, ..settings() });
    at(&mut c, 10);
    assert_eq!(at(&mut c, 25), "", "a pause allows for one at a time");
    acknowledge(&mut c, 1, 26);
    assert_eq!(stored(&mut c, 1, 26), "complete 1");
    assert_eq!((at(&mut c, 30), at(&mut c, 31)), (String::new(), "trigger 2".to_owned()));
}

#[test]
fn a_later_checkpoint_subsumes_earlier_ones_but_not_one_that_is_being_stored() {
    let mut c = coordinator(CheckpointSettings { max_concurrent: 3, ..settings() });
    assert_eq!((at(&mut c, 10), at(&mut c, 20)), ("trigger 1".to_owned(), "trigger 2".to_owned()));
    assert_eq!(acknowledge(&mut c, 2, 21), "abort 1: checkpoint 2 is complete before it, store 2");
    assert_eq!(at(&mut c, 30), "trigger 3");
    assert_eq!(acknowledge(&mut c, 3, 31), "", "2 is being stored");
    assert_eq!(stored(&mut c, 2, 32), "complete 2, store 3");
    assert_eq!(stored(&mut c, 3, 33), "complete 3");
}

#[test]
fn failures_in_a_row_fail_the_job_and_a_success_forgets_them() {
    let mut c = coordinator(CheckpointSettings { tolerable_failures: 1, ..settings() });
    at(&mut c, 10);
    let late = "abort 1: 3 of 3 participants have not acknowledged within 30s, trigger 2";
    assert_eq!(at(&mut c, 40), late);
    acknowledge(&mut c, 2, 41);
    assert_eq!(stored(&mut c, 2, 42), "complete 2");
    assert_eq!(at(&mut c, 50), "trigger 3");
    c.handle_declined(3, "disk full".to_owned(), 51 * SECOND);
    assert_eq!(actions(&mut c), "abort 3: disk full");
    assert_eq!(at(&mut c, 60), "trigger 4");
    acknowledge(&mut c, 4, 61);
    c.handle_stored(4, Err("disk full".to_owned()), 62 * SECOND);
    assert_eq!(actions(&mut c), "abort 4: the metadata cannot be stored: disk full, fail 4");
    assert_eq!((at(&mut c, 100), c.poll_timeout()), (String::new(), None), "it is over");
}

#[test]
fn the_last_checkpoint_comes_at_once_and_is_tried_again() {
    let mut c = coordinator(CheckpointSettings { min_pause: 60 * SECOND, ..settings() });
    at(&mut c, 10);
    c.handle_ended(0, 11 * SECOND);
    assert_eq!(actions(&mut c), "");
    c.handle_ended(1, 12 * SECOND);
    assert_eq!(actions(&mut c), "trigger 2", "whatever is under way");
    assert_eq!(acknowledge(&mut c, 1, 12), "store 1");
    assert_eq!(stored(&mut c, 1, 12), "complete 1");
    c.handle_declined(2, "busy".to_owned(), 13 * SECOND);
    assert_eq!(actions(&mut c), "abort 2: busy");
    assert_eq!(at(&mut c, 73), "trigger 3");
    acknowledge(&mut c, 3, 74);
    assert_eq!(stored(&mut c, 3, 75), "complete 3 last");
    assert_eq!(c.poll_timeout(), None);
}

const SAVEPOINT: AskedSnapshot = AskedSnapshot { kind: BarrierKind::Savepoint, stop: false };
const STOP: AskedSnapshot = AskedSnapshot { kind: BarrierKind::Checkpoint, stop: true };

#[test]
fn a_savepoint_waits_for_nothing_and_nothing_overtakes_it() {
    let mut c = coordinator(CheckpointSettings { min_pause: 5 * SECOND, ..settings() });
    at(&mut c, 10);
    assert_eq!(c.handle_request(SAVEPOINT, 11 * SECOND), Ok(2));
    assert_eq!(actions(&mut c), "trigger savepoint 2");
    assert_eq!(c.handle_request(SAVEPOINT, 12 * SECOND), Err(RequestRefused::Busy(2)));
    acknowledge(&mut c, 1, 12);
    assert_eq!(stored(&mut c, 1, 12), "complete 1");
    assert_eq!(at(&mut c, 25), "", "due, but the savepoint is not complete");
    acknowledge(&mut c, 2, 26);
    assert_eq!(stored(&mut c, 2, 26), "complete 2, trigger 3");
}

#[test]
fn a_savepoint_that_fails_is_no_failure_of_the_job() {
    let mut c = coordinator(CheckpointSettings { tolerable_failures: 0, ..settings() });
    assert_eq!(c.handle_request(SAVEPOINT, SECOND), Ok(1));
    c.handle_declined(1, "disk full".to_owned(), 2 * SECOND);
    assert_eq!(actions(&mut c), "trigger savepoint 1, abort 1: disk full");
    assert_eq!(c.handle_request(STOP, 3 * SECOND), Ok(2));
    let late = "abort 2: 3 of 3 participants have not acknowledged within 30s, trigger 3";
    assert_eq!(actions(&mut c) + ", " + &at(&mut c, 33), format!("trigger 2 and stop, {late}"));
}

#[test]
fn the_snapshot_at_which_a_job_stops_is_its_last() {
    let mut c = coordinator(settings());
    assert_eq!(c.handle_request(STOP, SECOND), Ok(1));
    assert_eq!(acknowledge(&mut c, 1, 2), "trigger 1 and stop, store 1");
    assert_eq!(stored(&mut c, 1, 2), "complete 1 last");
    assert_eq!(c.handle_request(SAVEPOINT, 3 * SECOND), Err(RequestRefused::Ending));
    assert_eq!((at(&mut c, 100), c.poll_timeout()), (String::new(), None));
}

#[test]
fn a_job_that_ends_while_a_savepoint_is_taken_takes_its_last_checkpoint_behind_it() {
    let mut c = coordinator(settings());
    assert_eq!(c.handle_request(SAVEPOINT, SECOND), Ok(1));
    (0..2).for_each(|subtask| c.handle_ended(subtask, 2 * SECOND));
    assert_eq!(acknowledge(&mut c, 1, 3), "trigger savepoint 1, store 1");
    assert_eq!(stored(&mut c, 1, 3), "complete 1, trigger 2");
    assert_eq!(c.handle_request(STOP, 3 * SECOND), Err(RequestRefused::Ending));
    acknowledge(&mut c, 2, 4);
    assert_eq!(stored(&mut c, 2, 4), "complete 2 last");
}

#[test]
fn the_end_of_a_drained_job_is_what_it_is_told_to_be() {
    let mut c = coordinator(settings());
    c.set_last_kind(BarrierKind::Savepoint);
    (0..2).for_each(|subtask| c.handle_ended(subtask, 2 * SECOND));
    assert_eq!(actions(&mut c), "trigger savepoint 1");
    acknowledge(&mut c, 1, 3);
    assert_eq!(stored(&mut c, 1, 3), "complete 1 last");
}

/// Something that happens to a coordinator.
#[derive(Clone, Debug)]
enum Event {
    Pass(u64),
    Acknowledge(u64, usize),
    Decline(u64),
    Stored(bool),
    Ask(AskedSnapshot),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => (0u64..15).prop_map(Event::Pass),
        8 => (0u64..4, 0usize..3).prop_map(|(back, who)| Event::Acknowledge(back, who)),
        1 => (0u64..4).prop_map(Event::Decline),
        3 => any::<bool>().prop_map(Event::Stored),
        1 => prop_oneof![4 => Just(SAVEPOINT), 1 => Just(STOP)].prop_map(Event::Ask),
    ]
}

proptest! {
    /// Whatever happens in whatever order: each checkpoint is triggered once and ends once, completion ascends and
    /// needs everybody, limits hold, and the job fails with exactly one failure too many. What is asked for is triggered
    /// at once, nothing overtakes it, and it is no failure of the job's.
    #[test]
    fn every_checkpoint_ends_once_and_as_it_must(
        events in prop::collection::vec(event(), 1..300),
        max_concurrent in 1u32..4,
        pause in 0u64..8,
    ) {
        let min_pause = Duration::from_secs(pause);
        let settings = CheckpointSettings { max_concurrent, min_pause, tolerable_failures: 2, ..settings() };
        let mut c = coordinator(settings);
        let (mut now, mut triggered, mut completed, mut failures) = (Duration::ZERO, 0, 0, 0);
        let (mut open, mut storing, mut ended_at) = (BTreeMap::<u64, [bool; 3]>::new(), None, None);
        let mut asked: Option<(u64, AskedSnapshot)> = None;
        for event in events {
            match event {
                Event::Pass(seconds) => {
                    now += Duration::from_secs(seconds);
                    c.handle_timeout(now);
                }
                Event::Acknowledge(back, who) => {
                    let id = triggered.max(back) - back;
                    open.entry(id).and_modify(|all| all[who] = true);
                    c.handle_acknowledged(id, who, now);
                }
                Event::Decline(back) => c.handle_declined(triggered.max(back) - back, "no".to_owned(), now),
                Event::Stored(well) => if let Some(id) = storing.take() {
                    c.handle_stored(id, if well { Ok(()) } else { Err("no".to_owned()) }, now);
                },
                Event::Ask(request) => match c.handle_request(request, now) {
                    Ok(id) => prop_assert!(asked.replace((id, request)).is_none() && id == triggered + 1),
                    Err(refused) => {
                        prop_assert_eq!(Some(refused), asked.map(|(id, _)| RequestRefused::Busy(id)));
                    }
                },
            }
            while let Some(action) = c.poll_action() {
                match action {
                    CheckpointAction::Trigger { id, .. } => {
                        prop_assert_eq!(id, triggered + 1);
                        triggered = id;
                        match asked {
                            Some((wanted, _)) => prop_assert_eq!(id, wanted),
                            None => {
                                let at_most = if pause > 0 { 1 } else { max_concurrent as usize };
                                prop_assert!(open.len() < at_most);
                                prop_assert!(ended_at.is_none_or(|at| now >= at + min_pause));
                            }
                        }
                        open.insert(id, [false; 3]);
                    }
                    CheckpointAction::Store { id } => {
                        prop_assert_eq!(open[&id], [true; 3]);
                        prop_assert_eq!(storing.replace(id), None);
                        prop_assert_eq!(open.keys().next(), Some(&id), "earlier ones are subsumed");
                    }
                    CheckpointAction::Complete { id, last, .. } => {
                        prop_assert!(open.remove(&id).is_some() && id > completed);
                        completed = id;
                        match asked.take_if(|(wanted, _)| *wanted == id) {
                            Some((_, request)) => prop_assert_eq!(request.stop, last),
                            None => {
                                prop_assert!(!last);
                                (failures, ended_at) = (0, Some(now));
                            }
                        }
                        if last {
                            prop_assert_eq!(c.poll_timeout(), None);
                            prop_assert_eq!(c.handle_request(SAVEPOINT, now), Err(RequestRefused::Ending));
                            return Ok(());
                        }
                    }
                    CheckpointAction::Abort { id, failure } => {
                        prop_assert!(open.remove(&id).is_some());
                        if asked.take_if(|(wanted, _)| *wanted == id).is_some() {
                            prop_assert!(!matches!(failure, CheckpointFailure::Subsumed(_)));
                        } else if !matches!(failure, CheckpointFailure::Subsumed(_)) {
                            (failures, ended_at) = (failures + 1, Some(now));
                        }
                    }
                    CheckpointAction::Fail { .. } => {
                        prop_assert_eq!(failures, 3);
                        return Ok(());
                    }
                }
            }
            prop_assert!(failures <= 2);
            prop_assert_eq!(c.pending(), open.len());
        }
    }
}
