//! Guests that misbehave: each ends its job with an error that says what it did, and never takes the host with it.

use std::{fs, path::Path};

use tempfile::TempDir;

use crate::support::{Output, command, finish, rows};

/// Runs a job over the numbers 1 to 1,000 through one function. `operator` is the rest of its table.
fn run(out: &Path, function: &str, operator: &str) -> Output {
    let module = function.split('.').next().expect("split gives one part at least");
    // Nothing can read from a function without output.
    let sink = if SILENT.contains(&function) {
        ""
    } else {
        "[sink.out]\nconnector = \"file\"\ninput = \"victim\"\nformat = \"jsonl\""
    };
    let path = if sink.is_empty() { String::new() } else { format!("path = \"{}/good\"", out.display()) };
    let job = format!(
        r#"
        [job]
        name = "faults"

        [module.{module}]
        path = "${{MILLSTREAM_GUESTS}}/{module}.wasm"

        [source.numbers]
        connector = "generator"
        fields = {{ n = {{ kind = "sequence", start = 1 }} }}
        records = 1000

        [operator.victim]
        function = "{function}"
        input = "numbers"
        limits = {{ memory = "200MiB", call-timeout = "500ms", output = "16MiB" }}
        {operator}

        {sink}
        {path}
        "#
    );
    let file = out.join("job.toml");
    fs::write(&file, job).expect("a temporary folder can be written to");
    finish(command(out).arg("run").arg(file).arg("--quiet"))
}

/// Functions that declare no output.
const SILENT: [&str; 2] = ["hostile.process_panics_on_open", "hostile.recurses"];

/// Expects that a function fails its job, and that the error has these words.
#[track_caller]
fn fails(function: &str, operator: &str, words: &[&str]) {
    let out = TempDir::new().expect("a temporary folder");
    let output = run(out.path(), function, operator);
    assert_eq!(output.code, Some(1), "{function}: {}{}", output.stdout, output.stderr);
    // The printer breaks lines and draws a frame; words count.
    let text = output.stderr.replace(['│', '\n'], " ");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for word in ["`victim[0]`"].iter().chain(words) {
        assert!(text.contains(word), "{function}: `{word}` is missing in\n{}", output.stderr);
    }
}

const KEYED: &str = "key = [\"n\"]";

#[test]
fn panics_are_told_with_their_text_and_where_they_happened() {
    fails("hostile.panics_on_open", "", &["panicked while opening", "trapped in `open`"]);
    fails(
        "hostile.panics_on_row",
        "",
        &["panicked at row 1", "panics.rs", "trapped in `apply`", "records 0 to 999"],
    );
    fails("hostile.process_panics_on_open", KEYED, &["panicked while opening a process function"]);
    fails("hostile.panics_on_timer", KEYED, &["panicked at the timer of", "trapped in `on-timer`"]);
}

#[test]
fn work_memory_and_stack_without_end_are_stopped_at_their_budgets() {
    fails("hostile.loops", "", &["500ms", "limits.call-timeout"]);
    fails("hostile.allocates", "", &["memory", "limits.memory"]);
    fails("hostile.recurses", KEYED, &["stack"]);
    fails("hostile.floods_the_log", "", &["stopped in `apply`"]);
}

#[test]
fn malformed_results_are_refused_with_what_was_found_and_expected() {
    for (function, words) in [
        ("short_column", &["999", "1000"][..]),
        ("falling_offsets", &["offsets"]),
        ("offsets_behind_bytes", &["offsets"]),
        ("missing_offset", &["offsets"]),
        ("invalid_text", &["UTF-8"]),
        ("wrong_layout", &["float64", "int64"]),
        ("no_column", &["0 columns", "1"]),
        ("extra_column", &["2 columns", "1"]),
        ("short_validity", &["validity"]),
        ("undeclared_null", &["null"]),
        ("origin_out_of_range", &["1000"]),
        ("short_origins", &["999", "1000"]),
        ("each_of_others", &["1001", "1000"]),
        ("unknown_port", &["port 7"]),
        ("rejected_out_of_range", &["1000"]),
        ("huge", &["limits.output"]),
        ("many_rows", &["4294967295"]),
        ("long_error", &["limits.output"]),
    ] {
        fails(&format!("hostile_raw.{function}"), "", words);
    }
}

#[test]
fn state_and_timers_of_unknown_keys_cannot_be_touched() {
    for (function, words) in [
        ("unknown_key_read", &["key position", "does not exist"][..]),
        ("unknown_key_write", &["key position", "does not exist"]),
        ("short_cells", &["1", "3"]),
        ("unknown_state", &["not_declared", "count"]),
        ("unknown_key_timer", &["key position 4294967295 does not exist"]),
        ("uneven_timers", &["1", "3"]),
    ] {
        fails(&format!("hostile_raw.{function}"), KEYED, words);
    }
}

#[test]
fn of_a_thousand_rows_ten_that_trap_are_found_and_set_aside() {
    let out = TempDir::new().expect("a temporary folder");
    let letters = format!(
        r#"
        on-trap = "isolate"
        on-error = "dead-letter"

        [sink.letters]
        connector = "file"
        input = "victim.dead-letter"
        path = "{out}/bad"
        format = "jsonl"
        "#,
        out = out.path().display()
    );
    run(out.path(), "hostile.poison", &letters).success();
    let (good, bad) = (rows(&out.path().join("good")), rows(&out.path().join("bad")));
    assert_eq!((good.len(), bad.len()), (990, 10));
    for letter in bad {
        let row: serde_json::Value =
            serde_json::from_str(letter["row"].as_str().expect("text")).expect("JSON");
        let n = row["n"].as_i64().expect("a number");
        assert_eq!(n % 100, 0, "{letter}");
        let reason = letter["reason"].as_str().expect("text");
        assert!(reason.contains(&format!("the number {n} is poison")), "{reason}");
        assert_eq!(letter["operator"], "victim");
        assert_eq!(letter["position"], format!("numbers: record {}", n - 1));
    }
}

#[test]
fn isolated_rows_can_be_skipped_or_fail_the_job() {
    let out = TempDir::new().expect("a temporary folder");
    let skipped = run(out.path(), "hostile.poison", "on-trap = \"isolate\"\non-error = \"skip\"").success();
    assert_eq!(rows(&out.path().join("good")).len(), 990);
    assert!(skipped.stdout.contains("990"), "{}", skipped.stdout);
    fails("hostile.poison", "on-trap = \"isolate\"", &["the number 100 is poison", "on-error"]);
}

#[test]
fn modules_that_cannot_be_used_are_refused_before_anything_runs() {
    let out = TempDir::new().expect("a temporary folder");
    let refuse = |bytes: Option<&[u8]>, words: &[&str]| {
        let guest = out.path().join("guest.wasm");
        drop(fs::remove_file(&guest));
        if let Some(bytes) = bytes {
            fs::write(&guest, bytes).expect("a temporary folder can be written to");
        }
        let mut command = command(out.path());
        command.env("MILLSTREAM_GUESTS", out.path());
        let job = "[job]\nname = \"x\"\n[module.guest]\npath = \"${MILLSTREAM_GUESTS}/guest.wasm\"\n\
            [source.s]\nconnector = \"generator\"\nfields = { n = { kind = \"sequence\" } }\nrecords = 1\n\
            [operator.o]\nfunction = \"guest.f\"\ninput = \"s\"\n[sink.k]\nconnector = \"blackhole\"\ninput = \"o\"\n";
        let file = out.path().join("modules.toml");
        fs::write(&file, job).expect("a temporary folder can be written to");
        let output = finish(command.arg("run").arg(&file));
        assert_eq!(output.code, Some(3), "{}", output.stderr);
        let text = output.stderr.replace(['│', '\n'], " ");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for word in words {
            assert!(text.contains(word), "`{word}` is missing in\n{}", output.stderr);
        }
    };
    refuse(None, &["guest.wasm", "cannot be read"]);
    refuse(Some(b""), &["the file is empty"]);
    refuse(Some(b"hello world"), &["not WebAssembly"]);
    refuse(Some(b"\0asm\x01\0\0\0"), &["core module", "millstream build"]);
    // The smallest component: nothing in it.
    refuse(Some(b"\0asm\x0d\0\x01\0"), &["manifest"]);
}
