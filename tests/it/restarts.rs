//! A job that is started again and again in one process leaves nothing behind.
#![cfg(target_os = "linux")]

use std::{
    fs,
    io::{BufRead, BufReader},
    process::Stdio,
};

use crate::subject::Subject;

/// What a process takes of the system.
#[derive(Clone, Copy, Debug)]
struct Taken {
    threads: usize,
    descriptors: usize,
    resident_kib: u64,
}

impl Taken {
    fn by(process: u32) -> Self {
        let count = |folder: &str| {
            let path = format!("/proc/{process}/{folder}");
            fs::read_dir(&path).unwrap_or_else(|e| panic!("{path}: {e}")).count()
        };
        let status = fs::read_to_string(format!("/proc/{process}/status")).expect("the process runs");
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next());
        let resident_kib = resident.and_then(|kib| kib.parse().ok()).expect("the system says so");
        Self { threads: count("task"), descriptors: count("fd"), resident_kib }
    }
}

#[test]
fn two_hundred_restarts_take_nothing_more_than_fifty() {
    let job = r#"
        [job]
        name = "poisoned"
        parallelism = 2
        checkpoint = { interval = "5ms" }
        restart = { strategy = "fixed-delay", attempts = 200, delay = "2ms" }
        [module.hostile]
        path = "${MILLSTREAM_GUESTS}/hostile.wasm"
        [source.numbers]
        connector = "generator"
        fields = { n = { kind = "sequence", start = 1 } }
        records = 1000
        rate = 5000
        [operator.victim]
        function = "hostile.poison"
        input = "numbers"
        [sink.out]
        connector = "file"
        input = "victim"
        path = "${MILLSTREAM_OUT}/poisoned"
        format = "jsonl"
    "#;
    let subject = Subject::new(job, "poisoned");
    let mut child =
        subject.command().stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the command");
    let stderr = BufReader::new(child.stderr.take().expect("it is piped"));
    let (mut restarts, mut early, mut late) = (0, None, None);
    for line in stderr.lines() {
        let line = line.expect("text");
        restarts += usize::from(line.contains("is started again"));
        match restarts {
            50 => _ = early.get_or_insert_with(|| Taken::by(child.id())),
            198 => _ = late.get_or_insert_with(|| Taken::by(child.id())),
            _ => {}
        }
    }
    assert_eq!((restarts, child.wait().expect("a child").code()), (200, Some(1)));
    let (early, late) = (early.expect("50 restarts"), late.expect("198 restarts"));
    let shown = format!("{early:?} after 50 restarts, {late:?} after 198");
    assert!(late.threads <= early.threads + 4, "{shown}");
    assert!(late.descriptors <= early.descriptors + 8, "{shown}");
    assert!(late.resident_kib <= early.resident_kib + early.resident_kib / 4, "{shown}");
}
