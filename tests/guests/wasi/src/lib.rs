//! Functions that use what Rust's standard library has through WASI, as the code of others does that knows nothing of
//! Millstream.

use std::{
    collections::hash_map::RandomState,
    env,
    fs::File,
    hash::BuildHasher,
    io::{self, Read},
    process, thread,
    time::{Duration, Instant, SystemTime},
};

use millstream::{Context, Input, Output};

/// A number.
#[derive(Input)]
pub struct Number {
    pub n: i64,
}

/// What of a system there is.
#[derive(Output, Debug, PartialEq)]
pub struct System {
    /// Whether the system's time is that of the host's call.
    pub same_time: bool,
    /// Nanoseconds that an hour's sleep took.
    pub slept: i64,
    /// A hash under a random key.
    pub hash: i64,
    /// The variable `TOKEN`.
    pub token: Option<String>,
    pub variables: i64,
    pub arguments: i64,
    /// Bytes of the standard input.
    pub input: i64,
    /// What became of opening a file.
    pub file: String,
}

/// Emits what there is.
#[millstream::map]
pub fn system(row: Number, ctx: &Context) -> System {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let start = Instant::now();
    thread::sleep(Duration::from_secs(3600));
    let mut input = Vec::new();
    let read = io::stdin().read_to_end(&mut input);
    System {
        same_time: now.as_millis() as i64 == ctx.now(),
        slept: start.elapsed().as_nanos() as i64,
        hash: RandomState::new().hash_one(row.n) as i64,
        token: env::var("TOKEN").ok(),
        variables: env::vars().count() as i64,
        arguments: env::args().count() as i64,
        input: read.map_or(-1, |length| length as i64),
        file: File::open("/etc/passwd").map_or_else(|error| error.to_string(), |_| "opened".to_owned()),
    }
}

/// Prints each number, with the end of the line to standard output and without to standard error.
#[millstream::map]
pub fn prints(row: Number) -> bool {
    println!("number {}", row.n);
    eprint!("{}; ", row.n);
    true
}

/// Ends the program, as it thinks.
#[millstream::map]
pub fn exits(_row: Number) -> bool {
    eprintln!("giving up");
    process::exit(3)
}

millstream::module! {
    name: "wasi",
    functions: [system, prints, exits],
}
