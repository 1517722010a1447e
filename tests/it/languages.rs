//! Functions in C and JavaScript against the bare interface, in the same jobs as those of Rust: the interface is not
//! Rust-shaped.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{command, finish, rows};

/// The rows that a function makes of the numbers 1 to 1,000 and their remainders by 7.
fn run(function: &str, operator: &str) -> Vec<Value> {
    let module = function.split('.').next().expect("split gives one part at least");
    let out = TempDir::new().expect("a temporary folder");
    let job = format!(
        r#"
        [job]
        name = "languages"
        parallelism = 2

        [module.{module}]
        path = "${{MILLSTREAM_GUESTS}}/{module}.wasm"

        [source.numbers]
        connector = "generator"
        fields = {{ n = {{ kind = "sequence", start = 1 }}, k = {{ kind = "uniform", min = 0, max = 6 }} }}
        records = 1000

        [operator.victim]
        function = "{function}"
        input = "numbers"
        {operator}

        [sink.out]
        connector = "file"
        input = "victim"
        path = "out"
        format = "jsonl"
        "#
    );
    let file = out.path().join("job.toml");
    fs::write(&file, job).expect("a temporary folder can be written to");
    finish(command(out.path()).arg("run").arg(file).arg("--quiet")).success();
    rows(&out.path().join("out"))
}

fn number(row: &Value, column: &str) -> i64 {
    row[column].as_i64().unwrap_or_else(|| panic!("no number `{column}` in {row}"))
}

#[test]
fn a_map_function_in_c_and_in_javascript() {
    for module in ["c_map", "js_map"] {
        let rows = run(&format!("{module}.double"), "columns = { value = \"n\" }");
        assert_eq!(rows.len(), 1000, "{module}");
        assert!(rows.iter().all(|row| number(row, "doubled") == 2 * number(row, "n")), "{module}");
    }
}

#[test]
fn a_process_function_in_c_and_in_javascript_counts_each_key() {
    for module in ["c_process", "js_process"] {
        let rows = run(&format!("{module}.count"), "key = [\"k\"]");
        assert_eq!(rows.len(), 1000, "{module}");
        for key in 0..=6 {
            let of_key = rows.iter().filter(|row| number(row, "k") == key);
            let mut counts: Vec<i64> = of_key.map(|row| number(row, "count")).collect();
            counts.sort_unstable();
            assert!(counts.len() > 50, "{module}: key {key} has {} rows", counts.len());
            assert_eq!(counts, (1..=counts.len() as i64).collect::<Vec<_>>(), "{module}: key {key}");
        }
    }
}
