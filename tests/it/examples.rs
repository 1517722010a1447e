//! Every example gives what an independent program computes, at every parallelism.

use std::{collections::HashMap, env, path::PathBuf, process::Command};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{assert_same_rows, command, finish, lines, root, rows};

const PARALLELISMS: [u32; 3] = [1, 2, 4];

/// What a job wrote and what its summary says.
struct Run {
    rows: Vec<Value>,
    summary: Value,
    out: TempDir,
}

impl Run {
    /// The sum of a figure over all operators.
    fn sum(&self, figure: &str) -> u64 {
        let operators = self.summary["operators"].as_array().expect("a summary has operators");
        operators.iter().map(|o| o[figure].as_u64().unwrap_or_else(|| panic!("no {figure} in {o}"))).sum()
    }

    /// A figure of one operator.
    fn of(&self, operator: &str, figure: &str) -> &Value {
        let operators = self.summary["operators"].as_array().expect("a summary has operators");
        let found = operators.iter().find(|o| o["name"] == operator);
        &found.unwrap_or_else(|| panic!("no {operator} in {}", self.summary))[figure]
    }
}

fn run(example: &str, parallelism: u32, flights: Option<&PathBuf>) -> Run {
    run_with(example, parallelism, flights, &[])
}

/// A run with these variables, which the job file may ask for.
fn run_with(example: &str, parallelism: u32, flights: Option<&PathBuf>, variables: &[(&str, &str)]) -> Run {
    let out = TempDir::new().expect("a temporary folder");
    let mut command = command(out.path());
    command.arg("run").arg(root().join("examples").join(example).join("job.toml"));
    command.args(["--quiet", "--json", "--parallelism", &parallelism.to_string()]);
    match flights {
        Some(path) => command.env("MILLSTREAM_FLIGHTS", path),
        None => command.env_remove("MILLSTREAM_FLIGHTS"),
    };
    command.envs(variables.iter().copied());
    let summary = finish(&mut command).success().json();
    Run { rows: rows(&out.path().join(example)), summary, out }
}

fn expected(example: &str, file: &str) -> Vec<Value> {
    lines(&root().join("examples").join(example).join(file))
}

/// The flights of the whole year, where `MILLSTREAM_DATA` names the folder that has them.
fn year() -> Option<PathBuf> {
    let folder = PathBuf::from(env::var_os("MILLSTREAM_DATA")?);
    let path = folder.join("flights.csv.gz");
    assert!(path.is_file(), "MILLSTREAM_DATA is set, but there is no {}", path.display());
    Some(path)
}

fn check_flights(example: &str) {
    for parallelism in PARALLELISMS {
        let january = run(example, parallelism, None);
        assert_eq!(january.sum("late"), 0, "with a bound of 24 hours nothing is late");
        assert_eq!(january.of("flights", "records-out"), 27_004);
        assert_same_rows(january.rows, expected(example, "expected-2013-01.jsonl"));
        let Some(flights) = year() else { continue };
        let year = run(example, parallelism, Some(&flights));
        assert_eq!(year.sum("late"), 0, "with a bound of 24 hours nothing is late");
        assert_eq!(year.of("flights", "records-out"), 336_776);
        check_year(example, &year.out, year.rows);
    }
}

/// Compares with the rows of the independent program, or with their digest where they are too many for the repository.
fn check_year(example: &str, out: &TempDir, found: Vec<Value>) {
    let folder = root().join("examples").join(example);
    let digest = folder.join("expected-2013.json");
    if !digest.exists() {
        return assert_same_rows(found, expected(example, "expected-2013.jsonl"));
    }
    let compare = root().join("examples/expected/compare.py");
    let output = finish(Command::new("python3").arg(compare).arg(out.path().join(example)).arg(digest));
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
}

#[test]
fn delays() {
    check_flights("delays");
}

#[test]
fn busy_planes() {
    check_flights("busy-planes");
}

/// With its own limit the example finds no plane in January.
#[test]
fn planes_that_are_busy_at_a_lower_limit() {
    for parallelism in PARALLELISMS {
        let january = run_with("busy-planes", parallelism, None, &[("BUSY_PLANES_LIMIT", "3")]);
        let expected = expected("busy-planes", "expected-2013-01-limit-3.jsonl");
        assert_eq!(expected.len(), 936);
        assert_same_rows(january.rows, expected);
    }
}

#[test]
fn rotations() {
    check_flights("rotations");
}

#[test]
fn wordcount() {
    for parallelism in PARALLELISMS {
        let run = run("wordcount", parallelism, None);
        assert_eq!(run.rows.len(), 14_375, "every update is emitted");
        let mut last: HashMap<String, u64> = HashMap::new();
        for row in &run.rows {
            let (word, count) = (row["word"].to_string(), row["count"].as_u64().expect("a count"));
            last.entry(word).and_modify(|c| *c = count.max(*c)).or_insert(count);
        }
        let want = expected("wordcount", "expected.jsonl");
        let want: HashMap<_, _> =
            want.iter().map(|r| (r["word"].to_string(), r["count"].as_u64().expect("a count"))).collect();
        assert_eq!(last, want);
    }
}

#[test]
fn nexmark_q2_q5_q7() {
    for query in ["nexmark-q2", "nexmark-q5", "nexmark-q7"] {
        for parallelism in PARALLELISMS {
            assert_same_rows(run(query, parallelism, None).rows, expected(query, "expected.jsonl"));
        }
    }
}
