//! `[job]`.

use millstream_types::{JobName, Limits, MaxParallelism};

use super::{checkpoint, restart, state};
use crate::{
    JobSettings, StateSpec, document::Spanned, problem::Problem, source_text::Span, table_reader::TableReader,
};

/// Reads the table, or what holds without one. What is missing is an error only in a file that could be read at all.
pub(crate) fn read(file: &mut TableReader<'_>, readable: bool) -> JobSettings {
    let entry = file.entry("job");
    let Some(mut table) = entry.and_then(|e| TableReader::of_entry("[job]", e, file.problems)) else {
        if readable && entry.is_none() {
            file.problems.push(
                Problem::error("the job file has no [job] table")
                    .help("start it with\n[job]\nname = \"my-job\""),
            );
        }
        return settings(None, None, None);
    };
    let name = table.string("name");
    if name.is_none() && table.entry("name").is_none() {
        table.missing("name", "name = \"my-job\"");
    }
    let max_parallelism = table.integer("max-parallelism", 1, 1 << 15);
    let max = max_parallelism.as_ref().map_or(MaxParallelism::DEFAULT, max_of);
    let parallelism = table.integer("parallelism", 1, i64::from(max.groups()));
    let name = name.and_then(|n| checked(n, &table));
    let mut settings = settings(name, parallelism.as_ref(), Some(max));
    if let Some(parallelism) = &parallelism
        && parallelism.value > i64::from(Limits::SUBTASKS)
    {
        table.problems.push(too_wide(parallelism.value, &parallelism.span));
    }
    if let Some(timeout) = table.duration("buffer-timeout") {
        settings.buffer_timeout = timeout.value;
    }
    if let Some(interval) = table.positive_duration("watermark-interval") {
        settings.watermark_interval = interval.value;
    }
    settings.checkpoint = checkpoint::read(&mut table);
    settings.restart = restart::read(&mut table);
    (settings.state, settings.state_ttl) = state::read(&mut table);
    table.finish();
    settings
}

/// A node with more subtasks than a process has threads for.
pub(crate) fn too_wide(parallelism: i64, span: &Span) -> Problem {
    let most = Limits::SUBTASKS;
    let message =
        format!("parallelism {parallelism} is more than one process runs: at most {most}, a thread each");
    Problem::error(message).at(span, "too large")
}

fn settings(
    name: Option<String>,
    parallelism: Option<&Spanned<i64>>,
    max: Option<MaxParallelism>,
) -> JobSettings {
    JobSettings {
        name: JobName::new(name.unwrap_or_default()),
        parallelism: parallelism.map_or(1, |p| p.value as u32),
        max_parallelism: max.unwrap_or_default(),
        buffer_timeout: JobSettings::BUFFER_TIMEOUT,
        watermark_interval: JobSettings::WATERMARK_INTERVAL,
        checkpoint: None,
        restart: None,
        state: StateSpec::Memory,
        state_ttl: None,
    }
}

fn max_of(number: &Spanned<i64>) -> MaxParallelism {
    u32::try_from(number.value).ok().and_then(MaxParallelism::new).unwrap_or_default()
}

/// Job names are parts of paths and addresses.
fn checked(name: Spanned<String>, table: &TableReader<'_>) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let text = name.value;
    if !text.is_empty() && text.len() <= LONGEST_NAME && text.chars().all(plain) && !text.starts_with('.') {
        return Some(text);
    }
    let expected = "expected up to 100 letters, digits, `_`, `-` and `.`, and no `.` in front";
    let message = format!("`{text}` is no name for a job: {expected}");
    table.problems.push(Problem::error(message).at(&name.span, "here"));
    None
}

const LONGEST_NAME: usize = 100;
