//! A job as it is submitted and as it is handed to those who run it: enough to plan it anywhere.

use serde::{Deserialize, Serialize};

use crate::ModuleDigest;

/// A job file as it was read, with what it needs from where it was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobText {
    /// Its path, absolute: where its relative paths start, and how messages name it.
    pub path: String,
    /// Whether it is JSON, else TOML.
    pub json: bool,
    /// What it says, variables not replaced.
    pub text: String,
    /// The variables of the environment that it names, with their values there.
    pub variables: Vec<(String, String)>,
    /// The parallelism in the place of the one that it says, if another one is wanted.
    pub parallelism: Option<u32>,
}

/// A job with the modules that it names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobProgram {
    /// The job file.
    pub job: JobText,
    /// Its modules.
    pub modules: Vec<ModuleRef>,
}

/// A module of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleRef {
    /// What the job file calls it.
    pub name: String,
    /// Which one it is.
    pub digest: ModuleDigest,
}
