//! What is known of a job for ever: kept so that the next coordinator goes on with it.

use millstream_control::{JobId, JobProgram, JobState};
use serde::{Deserialize, Serialize};

/// A job as it was submitted, and what has become of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JobRecord {
    /// The version of this form.
    pub(crate) version: u32,
    pub(crate) id: JobId,
    pub(crate) name: String,
    pub(crate) program: JobProgram,
    /// Where it goes on from at its first start, in the place of its beginning.
    pub(crate) from: Option<String>,
    pub(crate) allow_dropped_state: bool,
    /// Where its checkpoints go, in the place of what its job file says.
    pub(crate) checkpoint_dir: Option<String>,
    /// Milliseconds since the epoch.
    pub(crate) submitted: i64,
    /// What its sinks call what they leave behind.
    pub(crate) run: u64,
    /// How many slots it takes.
    pub(crate) slots: u32,
    /// How often it has been started, under whatever coordinator.
    pub(crate) attempts: u32,
    pub(crate) end: Option<JobEndRecord>,
}

/// How a job has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JobEndRecord {
    pub(crate) state: JobState,
    /// Milliseconds since the epoch.
    pub(crate) at: i64,
    pub(crate) problem: Option<String>,
    /// Its last figures, as a JSON document.
    pub(crate) figures: Option<String>,
}

impl JobRecord {
    pub(crate) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).expect("texts and numbers always encode")
    }
}

/// The version of the form of records.
pub(crate) const VERSION: u32 = 1;

#[cfg(test)]
mod tests {
    use millstream_control::{JobText, ModuleDigest, ModuleRef};

    use super::*;

    #[test]
    fn a_record_comes_back() {
        let text = JobText {
            path: "/jobs/a.toml".into(),
            json: false,
            text: "[job]\nname = \"a\"\n".into(),
            variables: vec![("HOST".into(), "a".into())],
            parallelism: Some(2),
        };
        let module = ModuleRef { name: "m".into(), digest: ModuleDigest([7; 32]) };
        let record = JobRecord {
            version: VERSION,
            id: JobId(u128::MAX - 1),
            name: "a".into(),
            program: JobProgram { job: text, modules: vec![module] },
            from: None,
            allow_dropped_state: false,
            checkpoint_dir: Some("/checkpoints".into()),
            submitted: 5,
            run: 7,
            slots: 2,
            attempts: 3,
            end: Some(JobEndRecord {
                state: JobState::Failed,
                at: 9,
                problem: Some("why".into()),
                figures: None,
            }),
        };
        let read: JobRecord = serde_json::from_slice(&record.encode()).expect("its own form");
        assert_eq!(read, record);
    }
}
