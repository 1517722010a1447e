//! `window` of operators. What can be said of a window without its input is checked here.

use std::time::Duration;

use millstream_types::{Clock, Limits};

use crate::{
    Trigger, WindowAssigner, WindowSpec,
    document::{Spanned, Value},
    problem::Problem,
    source_text::Span,
    table_reader::TableReader,
};

#[derive(Debug)]
pub(crate) struct WindowTable {
    pub(crate) span: Span,
    pub(crate) spec: WindowSpec,
    pub(crate) start: Option<Spanned<String>>,
    pub(crate) end: Option<Spanned<String>>,
}

/// Reads `window`; none if there is none or if it has no meaning.
pub(crate) fn read(table: &mut TableReader<'_>) -> Option<WindowTable> {
    let mut window = table.table("window")?;
    let assigner = assigner(&mut window);
    let clock = window.choice("clock", &[("event", Clock::Event), ("processing", Clock::Processing)]);
    let clock = clock.map_or(Clock::Event, |c| c.value);
    let trigger = trigger(&mut window, clock, assigner);
    let purge = window.boolean("purge").is_some_and(|p| p.value);
    let lateness = lateness(&mut window, clock, assigner);
    let (start, end) = (window.string("start"), window.string("end"));
    for bound in start.iter().chain(&end) {
        if assigner == Some(WindowAssigner::Global) {
            refuse(&window, &bound.span, "a global window has neither start nor end");
        }
    }
    if let (Some(start), Some(end)) = (&start, &end)
        && start.value == end.value
    {
        refuse(&window, &end.span, "`start` and `end` of a window need columns of their own");
    }
    let span = window.span.clone();
    window.finish();
    let text = |column: &Option<Spanned<String>>| column.as_ref().map(|c| c.value.clone());
    let (start_column, end_column) = (text(&start), text(&end));
    let spec = WindowSpec {
        assigner: assigner?,
        clock,
        trigger: trigger?,
        purge,
        lateness,
        start_column,
        end_column,
    };
    Some(WindowTable { span, spec, start, end })
}

fn refuse(window: &TableReader<'_>, span: &Span, message: &str) {
    window.problems.push(Problem::error(message).at(span, "here"));
}

fn assigner(window: &mut TableReader<'_>) -> Option<WindowAssigner> {
    let (tumbling, sliding) = (window.positive_duration("tumbling"), window.positive_duration("sliding"));
    let session = window.positive_duration("session");
    let global = window.boolean("global");
    let kinds: Vec<_> = KINDS.iter().filter_map(|kind| window.entry(kind)).collect();
    if kinds.len() != 1 {
        let found = if kinds.is_empty() { "says no kind" } else { "says several kinds" };
        let message = format!("a window {found}: expected one of `tumbling`, `sliding`, `session`, `global`");
        let problem = Problem::error(message).at(&window.span, "here");
        window.problems.push(problem.help("such as window = { tumbling = \"1h\" }"));
    }
    let slide = slide(window, sliding.as_ref());
    let distance = tumbling.as_ref().or(slide.as_ref()).map(|d| d.value);
    let offset = offset(window, distance);
    if kinds.len() != 1 {
        return None;
    }
    match (tumbling, sliding, session, global) {
        (Some(size), ..) => Some(WindowAssigner::Tumbling { size: size.value, offset }),
        (_, Some(size), ..) => {
            Some(WindowAssigner::Sliding { size: size.value, slide: slide?.value, offset })
        }
        (_, _, Some(gap), _) => Some(WindowAssigner::Session { gap: gap.value }),
        (_, _, _, Some(Spanned { value: true, .. })) => Some(WindowAssigner::Global),
        (_, _, _, Some(global)) => {
            refuse(
                window,
                &global.span,
                "`global = false` is no window: leave `global` out or set it to true",
            );
            None
        }
        _ => None,
    }
}

fn slide(window: &mut TableReader<'_>, size: Option<&Spanned<Duration>>) -> Option<Spanned<Duration>> {
    let slide = window.positive_duration("slide");
    match (size, &slide) {
        (Some(_), None) if window.entry("slide").is_none() => {
            window.missing("slide", "sliding = \"10s\", slide = \"2s\" starts a window of 10 s every 2 s");
        }
        (None, Some(slide)) if window.entry("sliding").is_none() => {
            refuse(window, &slide.span, "`slide` goes with `sliding`, which is not there");
        }
        (Some(size), Some(slide)) if slide.value > size.value => {
            refuse(
                window,
                &slide.span,
                "`slide` is larger than the window: rows between windows would be lost",
            );
        }
        (Some(size), Some(slide)) => check_overlap(window, size.value, slide),
        _ => {}
    }
    slide
}

/// A row is in as many windows as overlap, each of which fires for its key.
fn check_overlap(window: &TableReader<'_>, size: Duration, slide: &Spanned<Duration>) {
    let windows = size.as_millis().div_ceil(slide.value.as_millis());
    let (most, many) = (u128::from(Limits::WINDOWS_OF_A_ROW), u128::from(MANY_WINDOWS));
    let problem = match windows {
        _ if windows > most => {
            Problem::error(format!("a row would be in {windows} windows: expected at most {most}"))
        }
        _ if windows > many => Problem::warning(format!(
            "each row is in {windows} windows, and each of them fires for the row's key"
        )),
        _ => return,
    };
    let problem = problem.at(&slide.span, "a window starts so often");
    window.problems.push(problem.help("windows of that size with a longer `slide` fire less often"));
}

fn offset(window: &mut TableReader<'_>, distance: Option<Duration>) -> Duration {
    let Some(offset) = window.duration("offset") else { return Duration::ZERO };
    let shifts = window.entry("tumbling").or(window.entry("sliding")).is_some();
    if !shifts {
        refuse(window, &offset.span, "`offset` goes with `tumbling` or `sliding`");
    } else if distance.is_some_and(|d| offset.value >= d) {
        refuse(window, &offset.span, "`offset` has to be less than the distance between windows");
    }
    offset.value
}

fn trigger(window: &mut TableReader<'_>, clock: Clock, assigner: Option<WindowAssigner>) -> Option<Trigger> {
    let at_end = if clock == Clock::Event { Trigger::EventTime } else { Trigger::ProcessingTime };
    let Some(entry) = window.entry("trigger") else {
        if assigner == Some(WindowAssigner::Global) && clock == Clock::Processing {
            let message = "a global window by processing time never ends: it needs a `trigger`";
            refuse(window, &window.span.clone(), message);
        }
        return Some(at_end);
    };
    if let Value::Table(_) = entry.node.value {
        return table_trigger(window);
    }
    let names = [("event-time", Trigger::EventTime), ("processing-time", Trigger::ProcessingTime)];
    let trigger = window.choice("trigger", &names)?;
    if trigger.value != at_end {
        let message =
            "the trigger's time is not the window's: set `clock = \"event\"` or `\"processing\"` alike";
        refuse(window, &trigger.span, message);
    }
    Some(trigger.value)
}

fn table_trigger(window: &mut TableReader<'_>) -> Option<Trigger> {
    let mut table = window.table("trigger")?;
    let count = table.integer("count", 1, i64::MAX);
    let continuous = table.positive_duration("continuous");
    let both = table.entry("count").is_some() as u8 + table.entry("continuous").is_some() as u8;
    if both != 1 {
        refuse(&table, &table.span, "a trigger is either { count = 100 } or { continuous = \"10s\" }");
    }
    table.finish();
    let count = count.map(|c| Trigger::Count(c.value.unsigned_abs()));
    count.or(continuous.map(|c| Trigger::Continuous(c.value)))
}

fn lateness(window: &mut TableReader<'_>, clock: Clock, assigner: Option<WindowAssigner>) -> Duration {
    let Some(lateness) = window.duration("lateness") else { return Duration::ZERO };
    if clock == Clock::Processing {
        refuse(window, &lateness.span, "nothing is late by processing time: leave `lateness` out");
    } else if assigner == Some(WindowAssigner::Global) {
        refuse(window, &lateness.span, "nothing is late for a global window: leave `lateness` out");
    }
    lateness.value
}

/// Windows a row from which on a job is worth a word.
const MANY_WINDOWS: u32 = 1000;
const KINDS: [&str; 4] = ["tumbling", "sliding", "session", "global"];
