//! Writes the parts of one subtask of a `file` sink.

use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use millstream_operator::{ConnectorError, SinkWriter};
use millstream_types::{Batch, Schema};

use super::{
    lineage::{Lineage, Writer, cannot_use},
    options::{Compression, Format},
    part::{Part, publish},
};

/// What the parts of a sink are like.
pub(crate) struct PartForm {
    pub(crate) folder: PathBuf,
    pub(crate) format: Format,
    pub(crate) compression: Compression,
    pub(crate) roll_size: u64,
    pub(crate) schema: Schema,
}

/// Writes parts one after the other. They become visible when they are complete, or by checkpoints where the job takes
/// some.
pub(crate) struct FileWriter {
    form: PartForm,
    writer: Writer,
    lineage: Lineage,
    /// Of subtasks that there were before the job went on at another parallelism: their numbers must not be used again.
    inherited: Vec<Lineage>,
    checkpoints: bool,
    part: Option<Part>,
    /// For each closed part of the lineage the checkpoint that makes it visible, once there is one.
    visible_with: Vec<Option<u64>>,
}

impl FileWriter {
    pub(crate) fn new(form: PartForm, writer: Writer, lineage: Lineage, checkpoints: bool) -> Self {
        Self {
            form,
            writer,
            lineage,
            inherited: Vec::new(),
            checkpoints,
            part: None,
            visible_with: Vec::new(),
        }
    }

    fn begin(&mut self) -> Result<Part, ConnectorError> {
        let PartForm { folder, format, compression, schema, .. } = &self.form;
        let name =
            self.lineage.name_next(&format!("{}{}", format.extension(), compression.suffix()), self.writer);
        Part::create(folder, &name, format, *compression, Arc::clone(schema.arrow()))
    }

    fn close(&mut self, part: Part) -> Result<(), ConnectorError> {
        let name = part.close()?;
        if self.checkpoints {
            self.lineage.closed.push(name);
            self.visible_with.push(None);
            return Ok(());
        }
        publish(&self.form.folder, &name)
    }
}

#[async_trait(?Send)]
impl SinkWriter for FileWriter {
    async fn write(&mut self, batch: Batch) -> Result<(), ConnectorError> {
        if batch.is_empty() {
            return Ok(());
        }
        let mut part = match self.part.take() {
            Some(part) => part,
            None => self.begin()?,
        };
        part.write(batch.records())?;
        if part.length() >= self.form.roll_size {
            return self.close(part);
        }
        self.part = Some(part);
        Ok(())
    }

    async fn prepare(&mut self, checkpoint: u64) -> Result<Vec<Vec<u8>>, ConnectorError> {
        if let Some(part) = self.part.take() {
            self.close(part)?;
        }
        // The snapshot will say that these parts are there, so their names have to outlive the machine as well.
        if self.visible_with.iter().any(Option::is_none) {
            sync(&self.form.folder)?;
        }
        self.visible_with.iter_mut().for_each(|with| *with = with.or(Some(checkpoint)));
        Ok(std::iter::once(&self.lineage).chain(&self.inherited).map(Lineage::encode).collect())
    }

    async fn commit(&mut self, checkpoint: u64) -> Result<(), ConnectorError> {
        let due =
            self.visible_with.iter().take_while(|with| with.is_some_and(|with| with <= checkpoint)).count();
        if due == 0 {
            return Ok(());
        }
        self.visible_with.drain(..due);
        let folder = &self.form.folder;
        self.lineage.closed.drain(..due).try_for_each(|name| publish(folder, &name))?;
        sync(folder)
    }

    async fn restore(&mut self, prepared: Vec<Vec<u8>>) -> Result<(), ConnectorError> {
        let folder = &self.form.folder;
        for bytes in prepared {
            let mut lineage = Lineage::decode(&bytes)?;
            lineage.restore(folder, self.writer)?;
            if lineage.subtask == self.lineage.subtask && self.lineage.next == 0 {
                self.lineage = lineage;
            } else {
                self.inherited.push(lineage);
            }
        }
        sync(folder)
    }

    async fn finish(&mut self) -> Result<(), ConnectorError> {
        match self.part.take() {
            Some(part) => self.close(part),
            None => Ok(()),
        }
    }
}

/// Makes the names in a folder outlive the machine.
fn sync(folder: &Path) -> Result<(), ConnectorError> {
    // Only Unix lets a folder be opened for that.
    if cfg!(unix) {
        File::open(folder).and_then(|f| f.sync_all()).map_err(|e| cannot_use(folder, e))
    } else {
        Ok(())
    }
}
