//! What a savepoint has besides state: the job file and the modules, so that it runs where there is nothing else.

use std::sync::Arc;

use millstream_graph::{JobFormat, Plan};
use millstream_operator::FunctionError;
use millstream_snapshot::{JobFileForm, ModuleMetadata, Program};
use millstream_storage::{SnapshotFolder, StorageError};

use crate::Modules;

/// A job file as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFileText {
    /// Where it was, for messages.
    pub path: String,
    /// How it is written.
    pub format: JobFormat,
    /// What it says, variables not replaced.
    pub text: Arc<str>,
}

/// A program with the bytes of its modules.
#[derive(Debug)]
pub(crate) struct ProgramContent {
    pub(crate) program: Program,
    /// By the name of the file.
    modules: Vec<(String, Arc<[u8]>)>,
}

impl ProgramContent {
    /// The program of a plan, with the modules that its functions were made of.
    pub(crate) fn new(job_file: &JobFileText, plan: &Plan, modules: &Modules) -> Result<Self, FunctionError> {
        let mut content = Self {
            program: Program {
                job_file: job_file.path.clone(),
                form: match job_file.format {
                    JobFormat::Toml => JobFileForm::Toml,
                    JobFormat::Json => JobFileForm::Json,
                },
                text: job_file.text.to_string(),
                modules: Vec::new(),
            },
            modules: Vec::new(),
        };
        for module in &plan.logical.modules {
            let bytes = modules.bytes(&module.name, &module.path)?;
            let described = ModuleMetadata::of(&module.name, &bytes);
            if content.modules.iter().all(|(file, _)| *file != described.file) {
                content.modules.push((described.file.clone(), bytes));
            }
            content.program.modules.push(described);
        }
        Ok(content)
    }

    /// Stores the modules in the folder of a savepoint.
    pub(crate) async fn store(&self, folder: &SnapshotFolder) -> Result<(), StorageError> {
        for (file, bytes) in &self.modules {
            folder.put_state(file, bytes.to_vec()).await?;
        }
        Ok(())
    }
}
