//! Images of an instance: hard links to its files, which never change once they are written.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use millstream_state::{ByteRows, Found, ReadTables, StateError, Table, Visit};
use millstream_types::{StateFile, StateFiles};
use rocksdb::{ColumnFamily, ColumnFamilyDescriptor, DB, checkpoint::Checkpoint};

use super::{KEYS, TIMERS, failed, map_name, read, scan};
use crate::RocksMemory;

/// Makes an image in a folder that is not there yet. What has been written and is in no file goes into one.
pub(super) fn create(db: &DB, folder: PathBuf) -> Result<StateFiles, StateError> {
    let checkpoint = Checkpoint::new(db).map_err(|e| failed(&folder, "made an image of", &e))?;
    let made = checkpoint.create_checkpoint(&folder);
    made.map_err(|e| failed(&folder, "made an image of", &e))?;
    let files = files_in(&folder).map_err(|e| failed(&folder, "listed", &e))?;
    Ok(StateFiles::new(folder, files))
}

/// The files that an instance is opened with, by name.
fn files_in(folder: &Path) -> io::Result<Vec<StateFile>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // Logs are off, and options are set at every start.
        if !name.ends_with(".log") && !name.starts_with("OPTIONS") {
            files.push(StateFile { name, length: entry.metadata()?.len() });
        }
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(files)
}

/// Puts the files of an image where an instance is to be opened. Those that it goes on writing are copied.
pub(super) fn link(files: &StateFiles, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for file in files.files() {
        let (from, to) = (files.path(file), folder.join(&file.name));
        if !file.name.ends_with(TABLE_FILE) || fs::hard_link(&from, &to).is_err() {
            fs::copy(&from, &to)?;
        }
    }
    Ok(())
}

/// An image that is open to be read, whatever tables it has.
pub struct OpenImage {
    db: DB,
    files: StateFiles,
}

impl OpenImage {
    /// Opens an image.
    ///
    /// # Errors
    /// If its files are not those of an instance.
    pub fn new(files: StateFiles, memory: &RocksMemory) -> Result<Self, StateError> {
        let mut options = memory.database();
        options.create_if_missing(false);
        options.create_missing_column_families(false);
        let refused = |e: rocksdb::Error| failed(files.folder(), "opened", &e);
        let names = DB::list_cf(&options, files.folder()).map_err(refused)?;
        let families = names.into_iter().map(|name| ColumnFamilyDescriptor::new(name, memory.table()));
        let db = DB::open_cf_descriptors_read_only(&options, files.folder(), families, false);
        Ok(Self { db: db.map_err(refused)?, files })
    }

    /// The family of a table; none if the image does not have it.
    fn family(&self, table: Table) -> Option<&ColumnFamily> {
        match table {
            Table::Keys => self.db.cf_handle(KEYS),
            Table::Timers => self.db.cf_handle(TIMERS),
            Table::Map(state) => self.db.cf_handle(&map_name(state)),
        }
    }
}

impl ReadTables for OpenImage {
    fn read(&mut self, table: Table, keys: &ByteRows, found: &mut Found<'_>) -> Result<(), StateError> {
        let Some(family) = self.family(table) else { return Ok(()) };
        read(&self.db, family, keys, found).map_err(|e| e.in_folder(self.files.folder()))
    }

    fn scan(
        &mut self,
        table: Table,
        from: &[u8],
        until: Option<&[u8]>,
        visit: &mut Visit<'_>,
    ) -> Result<(), StateError> {
        let Some(family) = self.family(table) else { return Ok(()) };
        scan(&self.db, family, (from, until), visit).map_err(|e| e.in_folder(self.files.folder()))
    }
}

/// How the names of files with rows end.
const TABLE_FILE: &str = ".sst";
