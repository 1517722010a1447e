//! State that goes when nothing is about its key for a while.

use std::time::Duration;

use crate::{subject::Subject, support::finish};

/// Counts keys of which each comes again and again for a second, and never after that.
fn counts(state: &str) -> Subject {
    let job = r#"
        [job]
        name = "expiry"
        parallelism = 2
        checkpoint = { interval = "50ms" }
        STATE
        [module.bench]
        path = "${MILLSTREAM_GUESTS}/bench.wasm"
        [source.records]
        connector = "generator"
        kind = "bench-process"
        keys = KEYS
        records = 60000
        rate = 20000
        time = { column = "ts", out-of-orderness = "1s" }
        [operator.counts]
        function = "bench.process"
        input = "records"
        key = ["key"]
        [sink.out]
        connector = "blackhole"
        input = "counts"
    "#;
    Subject::new(&job.replace("STATE", state).replace("KEYS", "20000"), "expiry")
}

fn expired(subject: &Subject) -> u64 {
    let summary = finish(&mut subject.command()).success().json();
    let operators = summary["operators"].as_array().expect("a list");
    let counts = operators.iter().find(|operator| operator["name"] == "counts").expect("it ran");
    counts["keys-expired"].as_u64().expect("a figure")
}

#[test]
fn keys_that_nothing_touches_expire_with_either_backend() {
    for backend in ["", "backend = \"rocksdb\", memory = \"16MiB\", dir = \"state\", "] {
        let subject = counts(&format!("state = {{ {backend}ttl = \"300ms\" }}"));
        let found = expired(&subject);
        assert!(found > 10_000, "{found} keys, of 20,000 that come about every second: {backend}");
    }
    assert_eq!(expired(&counts("state = { ttl = \"1h\" }")), 0);
}

#[test]
fn what_is_due_when_nobody_is_there_has_gone_at_the_restore() {
    let subject = counts("state = { ttl = \"2s\" }");
    assert!(subject.run_and_kill(Duration::from_millis(1500)), "it takes three seconds");
    std::thread::sleep(Duration::from_millis(2500));
    let found = expired(&subject);
    assert!(found > 1000, "{found} keys had expired while nothing ran");
}
