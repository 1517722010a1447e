//! The workloads, as `tests/bench/flink/README.md` defines them to the record.

use std::{collections::HashMap, fmt};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

/// A workload.
#[derive(Debug)]
pub(crate) struct Workload {
    /// Its name, here and for Flink.
    pub(crate) name: &'static str,
    /// The job file, with places for what varies.
    job: &'static str,
    /// The source, whose records are counted.
    pub(crate) source: &'static str,
    /// How the checksum writes a row; none if it is not checked.
    pub(crate) form: Option<&'static str>,
}

/// Records that are checked.
pub(crate) const CHECKED: u64 = 1_000_000;

/// How a job ends.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum End {
    Records(u64),
    Seconds(f64),
}

/// Number and sum of output rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Checksum {
    pub(crate) rows: u64,
    pub(crate) checksum: String,
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows, sum {}", self.rows, self.checksum)
    }
}

macro_rules! workload {
    ($name:literal, $source:literal, $form:expr) => {
        Workload {
            name: $name,
            job: include_str!(concat!("../jobs/", $name, ".toml")),
            source: $source,
            form: $form,
        }
    };
}

const BID: &str = "{auction},{bidder},{price},{channel},{url},{ts},{extra}";

const WORKLOADS: [Workload; 11] = [
    workload!("map", "lines", Some("{line}")),
    workload!("shuffle", "records", Some("{record}")),
    workload!("wordcount", "lines", Some("({word},{count})")),
    workload!("window", "records", Some("({key},{window_end},({count},{sum}),{max})")),
    workload!("process", "records", Some("({key},{count})")),
    workload!("latency", "records", None),
    workload!("q0", "events", Some(BID)),
    workload!("q1", "events", Some(BID)),
    workload!("q2", "events", Some("({auction},{price})")),
    workload!("q5", "events", Some("({window_end},{auction},{count})")),
    workload!("q7", "events", Some("({auction},{price},{bidder},{ts})")),
];

/// The workloads of these names, or all.
pub(crate) fn select(names: &[String]) -> Result<Vec<&'static Workload>> {
    if names.is_empty() {
        return Ok(WORKLOADS.iter().collect());
    }
    let find = |name: &String| match WORKLOADS.iter().find(|w| w.name == name) {
        Some(workload) => Ok(workload),
        None => bail!("there is no workload `{name}`: expected {}", WORKLOADS.map(|w| w.name).join(", ")),
    };
    names.iter().map(find).collect()
}

impl Workload {
    /// The job file, with its modules in the folder `guests`, and `settings` as further lines of `[job]`.
    pub(crate) fn job(&self, guests: &str, end: End, checked: bool, settings: &str) -> String {
        let end = match end {
            End::Records(records) => format!("records = {records}"),
            End::Seconds(seconds) => format!("seconds = {seconds:?}"),
        };
        let job = self.job.replacen("[job]\n", &format!("[job]\n{settings}"), 1);
        job.replace("{guests}", guests).replace("{end}", &end).replace("{sink}", &self.sink(checked))
    }

    fn sink(&self, checked: bool) -> String {
        match self.form {
            Some(form) if checked => format!("connector = \"checksum\"\nform = \"{form}\""),
            None => "connector = \"latency\"\nwarm-up = \"2s\"".to_owned(),
            Some(_) => "connector = \"blackhole\"".to_owned(),
        }
    }

    /// What an independent program found for a million records.
    pub(crate) fn expected(&self) -> Result<Option<Checksum>> {
        let all: HashMap<String, Checksum> =
            serde_json::from_str(include_str!("../expected/bench_expected.json"))
                .context("tests/bench/expected/bench_expected.json")?;
        Ok(all.get(self.name).cloned())
    }
}
