//! What a source file looks like.

use crate::repository::{Repository, report};

/// The one file a crate that may lift the ban on unsafe code, and why. Generated code stands beside it.
const UNSAFE: &[(&str, &str)] = &[
    (
        "host/state/src/prefetch.rs",
        "the prefetch instruction: an intrinsic that is unsafe to call but cannot fault",
    ),
    (
        "host/wasm/src/trusted.rs",
        "text that has been checked as a whole, text that writes itself into a guest, and modules sealed by this host",
    ),
    ("host/net/src/trusted.rs", "text from another process that has been checked as a whole"),
    ("tests/costs/src/allocations.rs", "an allocator that counts: the trait is unsafe"),
    ("guest-sdk/rust/src/field/text.rs", "bytes that have been checked to be ASCII"),
    ("guest-sdk/rust/src/component.rs", GENERATED_BINDINGS),
    ("tests/guests/rust/broken-manifest/src/lib.rs", GENERATED_BINDINGS),
    ("tests/guests/rust/hostile-raw/src/lib.rs", GENERATED_BINDINGS),
    ("tests/guests/rust/hostile-raw/src/map.rs", "a guest that hands over the same memory many times"),
];

/// The macro that makes bindings expands in place.
const GENERATED_BINDINGS: &str = "the bindings of the WIT package";

/// Files without a `//!` of their own, because a program writes them.
const GENERATED: &[(&str, &str)] = &[];

/// Files over their limit, and why they are not split.
const LONG: &[(&str, &str)] = &[("guest-sdk/c/src/module.c", GENERATED_BINDINGS)];

/// Lines of a file of code, most of which have a fourth of it.
const LONGEST: usize = 600;

/// Lines of a file in a folder `tests`: tables of cases with what is expected of each.
const LONGEST_TESTS: usize = 1000;

/// What is written by hand, by the ending of its name.
const WRITTEN: [&str; 8] = [".rs", ".wit", ".py", ".java", ".c", ".js", ".sh", ".md"];

/// What must not stay in a source file, and what to do about it. In two halves, so that this file has none of them.
const LEFT_OVER: &[(&str, &str)] = &[
    (concat!("#[", "ignore"), "make the test pass or remove it"),
    (concat!("todo", "!("), "do it or leave it out"),
    (concat!("unimplemented", "!("), "do it or leave it out"),
    (concat!("dbg", "!("), "remove it"),
    (concat!("TO", "DO"), "do it, or open an issue"),
    (concat!("FIX", "ME"), "fix it, or open an issue"),
];

#[test]
fn every_file_says_what_it_is_for() {
    let repository = Repository::open();
    let without =
        repository.texts(".rs").filter(|(_, text)| !opens_with_documentation(text)).map(|(path, _)| path);
    let problems = beyond(GENERATED, without.collect(), |path| format!("{path} does not open with `//!`"));
    report("what a file is for", &problems);
}

#[test]
fn no_file_is_too_long() {
    let repository = Repository::open();
    let written = WRITTEN.iter().flat_map(|ending| repository.texts(ending));
    let long = written.filter(|(path, text)| text.lines().count() > longest(path)).map(|(path, _)| path);
    let problems = beyond(LONG, long.collect(), |path| {
        format!("{path} has more than {} lines: split it", longest(path))
    });
    report("length of files", &problems);
}

/// Every workspace denies unsafe code, so whoever needs it has to name the lint.
#[test]
fn unsafe_blocks_are_where_they_are_known_to_be() {
    let repository = Repository::open();
    let lint = concat!("unsafe", "_code");
    let lifting = repository.texts(".rs").filter(|(_, text)| text.contains(lint)).map(|(path, _)| path);
    let mut problems =
        beyond(UNSAFE, lifting.collect(), |path| format!("{path} names `{lint}` and is not in UNSAFE"));
    let hand_written = UNSAFE.iter().filter(|(_, reason)| *reason != GENERATED_BINDINGS);
    let mut crates: Vec<_> =
        hand_written.filter_map(|(path, _)| path.split_once("/src/")).map(|(krate, _)| krate).collect();
    crates.sort_unstable();
    let twice = crates.windows(2).filter(|pair| pair[0] == pair[1]);
    problems.extend(twice.map(|pair| format!("{} has unsafe code in two files: bring it into one", pair[0])));
    report("unsafe code", &problems);
}

#[test]
fn nothing_is_left_over() {
    let repository = Repository::open();
    let problems: Vec<_> = repository.texts(".rs").flat_map(|(path, text)| left_over(path, &text)).collect();
    report("left over", &problems);
}

fn longest(path: &str) -> usize {
    // Not the top-level folder, in which there is code too.
    if path.contains("/tests/") { LONGEST_TESTS } else { LONGEST }
}

fn opens_with_documentation(text: &str) -> bool {
    text.starts_with("//!") || text.starts_with("#![")
}

fn left_over(path: &str, text: &str) -> Vec<String> {
    let lines = text.lines().enumerate();
    let found = lines.flat_map(|(number, line)| {
        let words = LEFT_OVER.iter().filter(move |(word, _)| line.contains(word));
        words.map(move |(word, what)| format!("{path}:{}: `{word}`: {what}", number + 1))
    });
    found.collect()
}

/// A problem for each file found that is no exception, and one for each exception that was not found.
fn beyond(exceptions: &[(&str, &str)], found: Vec<&str>, problem: impl Fn(&str) -> String) -> Vec<String> {
    let excepted = |path: &str| exceptions.iter().any(|(exception, _)| *exception == path);
    let new = found.iter().filter(|path| !excepted(path)).map(|path| problem(path));
    let stale = exceptions.iter().filter(|(exception, _)| !found.contains(exception));
    new.chain(stale.map(|(path, _)| format!("{path} is an exception that is not needed: remove it")))
        .collect()
}

#[test]
fn a_file_that_breaks_a_rule_is_found() {
    assert!(opens_with_documentation("//! What.\n") && opens_with_documentation("#![no_std]\n"));
    assert!(!opens_with_documentation("use std::fs;\n//! Late.\n"));
    assert_eq!([longest("tests/xtask/src/main.rs"), longest("host/graph/tests/graph/plans.rs")], [600, 1000]);
    let line = concat!("fn f() {\n    to", "do!()\n}");
    assert_eq!(left_over("a.rs", line).len(), 1);
    assert!(left_over("a.rs", line)[0].starts_with("a.rs:2: "));
}

#[test]
fn an_exception_holds_for_as_long_as_it_is_needed() {
    let problem = |path: &str| format!("{path} is wrong");
    assert!(beyond(&[("a.rs", "why")], vec!["a.rs"], problem).is_empty());
    assert_eq!(beyond(&[("a.rs", "why")], vec!["b.rs"], problem).len(), 2);
}
