//! Compiled modules on disk, so that a module is compiled once and not at every start.
//!
//! An entry is machine code that is run as it stands. So it is only taken from a folder and a file that belong to the
//! user who runs the host and that nobody else may write to, under a name made of the module's bytes and all that
//! determines the code (engine version, settings, target), and with a checksum over both. Anything else counts as not
//! there, and the module is compiled again.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    hash::{Hash, Hasher},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::SystemTime,
};

use wasmtime::{Engine, component::Component};

use crate::trusted;

/// The cache of one engine.
#[derive(Debug)]
pub(crate) struct CompileCache {
    dir: PathBuf,
    owner: u32,
    /// Digest of all that determines the code besides the module.
    engine: [u8; DIGEST_BYTES],
}

/// A folder that cannot hold a cache.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CacheError {
    #[error("it cannot be used: {0}")]
    Io(#[from] io::Error),
    #[error("it belongs to user {found}: expected {expected}, who runs this")]
    Owner { found: u32, expected: u32 },
    #[error("others may write to it (mode {mode:o}): expected 700")]
    Writable { mode: u32 },
}

impl CompileCache {
    /// The cache in a folder, which is made if it is not there.
    pub(crate) fn open(dir: &Path, engine: &Engine) -> Result<Self, CacheError> {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let owner = user(dir)?;
        check(&fs::metadata(dir)?, owner)?;
        let mut digest = Digest(blake3::Hasher::new());
        engine.precompile_compatibility_hash().hash(&mut digest);
        Ok(Self { dir: dir.to_owned(), owner, engine: *digest.0.finalize().as_bytes() })
    }

    /// The code of the module with this digest, if it is there and whole.
    pub(crate) fn load(&self, engine: &Engine, module: &blake3::Hash) -> Option<Component> {
        let key = self.key(module);
        let path = self.path(&key);
        let file = File::open(&path).ok()?;
        let component = self
            .read(file, &key)
            .and_then(|code| trusted::deserialize(engine, &code).map_err(io::Error::other));
        component.inspect_err(|error| tracing::warn!(path = %path.display(), %error, "a compiled module is damaged; it is compiled again")).ok()
    }

    /// Keeps the code of a module. A cache that cannot be written costs time and nothing else.
    pub(crate) fn store(&self, module: &blake3::Hash, component: &Component) {
        let key = self.key(module);
        let stored = component.serialize().map_err(io::Error::other).and_then(|code| self.write(&key, &code));
        if let Err(error) = stored.and_then(|()| self.prune(MAX_BYTES)) {
            tracing::warn!(dir = %self.dir.display(), %error, "a compiled module cannot be kept");
        }
    }

    fn key(&self, module: &blake3::Hash) -> blake3::Hash {
        blake3::keyed_hash(&self.engine, module.as_bytes())
    }

    fn path(&self, key: &blake3::Hash) -> PathBuf {
        self.dir.join(format!("{}.{EXTENSION}", key.to_hex()))
    }

    fn read(&self, mut file: File, key: &blake3::Hash) -> io::Result<Vec<u8>> {
        check(&file.metadata()?, self.owner).map_err(io::Error::other)?;
        let mut checksum = [0; DIGEST_BYTES];
        file.read_exact(&mut checksum)?;
        let mut code = Vec::new();
        file.read_to_end(&mut code)?;
        if blake3::keyed_hash(key.as_bytes(), &code) != checksum {
            return Err(io::Error::other("its checksum is not that of its content"));
        }
        // The time of the last use decides what is dropped first.
        let _ = file.set_modified(SystemTime::now());
        Ok(code)
    }

    /// Writes beside and renames, so that nobody ever sees half an entry.
    fn write(&self, key: &blake3::Hash, code: &[u8]) -> io::Result<()> {
        static WRITTEN: AtomicU64 = AtomicU64::new(0);
        let beside =
            self.dir.join(format!("{}.{}.{}", key.to_hex(), process::id(), WRITTEN.fetch_add(1, Relaxed)));
        let write = || {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
            file.write_all(blake3::keyed_hash(key.as_bytes(), code).as_bytes())?;
            file.write_all(code)?;
            fs::rename(&beside, self.path(key))
        };
        write().inspect_err(|_| {
            let _ = fs::remove_file(&beside);
        })
    }

    /// Drops entries that have not been used for longest until the rest takes at most `most` bytes.
    fn prune(&self, most: u64) -> io::Result<()> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let path = entry?.path();
            // Another process may have dropped it meanwhile.
            if let Ok(metadata) = fs::metadata(&path).and_then(|m| Ok((m.modified()?, m.len()))) {
                entries.push((metadata, path));
            }
        }
        entries.sort_unstable_by(|a, b| b.cmp(a));
        let mut total = 0;
        for ((_, bytes), path) in entries {
            total += bytes;
            if total > most {
                let _ = fs::remove_file(path);
            }
        }
        Ok(())
    }
}

/// The user that this process writes files as, found by writing one.
fn user(dir: &Path) -> io::Result<u32> {
    static PROBES: AtomicU64 = AtomicU64::new(0);
    let probe = dir.join(format!("probe.{}.{}", process::id(), PROBES.fetch_add(1, Relaxed)));
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&probe)?;
    let owner = file.metadata().map(|m| m.uid());
    fs::remove_file(&probe)?;
    owner
}

fn check(metadata: &fs::Metadata, owner: u32) -> Result<(), CacheError> {
    let (found, mode) = (metadata.uid(), metadata.mode() & 0o777);
    if found != owner {
        return Err(CacheError::Owner { found, expected: owner });
    }
    if mode & 0o022 != 0 {
        return Err(CacheError::Writable { mode });
    }
    Ok(())
}

/// Blake3 where a standard hasher is asked for: 256 bits instead of 64.
struct Digest(blake3::Hasher);

impl Hasher for Digest {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}

const DIGEST_BYTES: usize = 32;
const EXTENSION: &str = "compiled";
/// What the cache may take on disk.
const MAX_BYTES: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    struct Fixture {
        dir: tempfile::TempDir,
        engine: Engine,
        module: blake3::Hash,
    }

    impl Fixture {
        fn new() -> Self {
            let dir = tempfile::tempdir().expect("a folder");
            let fixture = Self { dir, engine: Engine::default(), module: blake3::hash(b"module") };
            let component = Component::new(&fixture.engine, "(component)").expect("a component");
            fixture.cache().store(&fixture.module, &component);
            fixture
        }

        fn cache(&self) -> CompileCache {
            CompileCache::open(&self.dir.path().join("modules"), &self.engine).expect("a cache")
        }

        fn entry(&self) -> PathBuf {
            let cache = self.cache();
            cache.path(&cache.key(&self.module))
        }

        fn found(&self) -> bool {
            self.cache().load(&self.engine, &self.module).is_some()
        }
    }

    #[test]
    fn an_entry_is_found_by_its_module_and_engine() {
        let fixture = Fixture::new();
        assert!(fixture.found());
        assert!(fixture.cache().load(&fixture.engine, &blake3::hash(b"another")).is_none());
        let other = Engine::new(wasmtime::Config::new().epoch_interruption(true)).expect("an engine");
        let cache = CompileCache::open(&fixture.dir.path().join("modules"), &other).expect("a cache");
        assert!(cache.load(&other, &fixture.module).is_none());
        assert_eq!(
            fs::read_dir(&cache.dir).expect("a folder").count(),
            1,
            "nothing is left beside the entry"
        );
    }

    #[test]
    fn damage_counts_as_not_there() {
        let fixture = Fixture::new();
        let whole = fs::read(fixture.entry()).expect("the entry");
        for at in [0, DIGEST_BYTES, whole.len() / 2, whole.len() - 1] {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            fs::write(fixture.entry(), &damaged).expect("written");
            assert!(!fixture.found(), "a flipped bit at {at}");
        }
        for length in [0, 10, DIGEST_BYTES, whole.len() - 1] {
            fs::write(fixture.entry(), &whole[..length]).expect("written");
            assert!(!fixture.found(), "cut to {length}");
        }
        fs::write(fixture.entry(), &whole).expect("written");
        assert!(fixture.found());
    }

    #[test]
    fn an_entry_under_the_name_of_another_is_not_taken() {
        let fixture = Fixture::new();
        let cache = fixture.cache();
        let other = blake3::hash(b"another");
        fs::copy(fixture.entry(), cache.path(&cache.key(&other))).expect("copied");
        assert!(cache.load(&fixture.engine, &other).is_none());
    }

    #[test]
    fn what_others_may_write_is_not_trusted() {
        let fixture = Fixture::new();
        let dir = fixture.dir.path().join("modules");
        assert_eq!(fs::metadata(&dir).expect("there").mode() & 0o777, 0o700);
        assert_eq!(fs::metadata(fixture.entry()).expect("there").mode() & 0o777, 0o600);
        let entry = fixture.entry();
        fs::set_permissions(&entry, fs::Permissions::from_mode(0o660)).expect("changed");
        assert!(!fixture.found());
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).expect("changed");
        let error = CompileCache::open(&dir, &fixture.engine).expect_err("refused").to_string();
        assert_eq!(error, "others may write to it (mode 777): expected 700");
    }

    #[test]
    fn what_has_not_been_used_for_longest_goes_first() {
        let fixture = Fixture::new();
        let cache = fixture.cache();
        let entry = fs::metadata(fixture.entry()).expect("there").len();
        let component = Component::new(&fixture.engine, "(component)").expect("a component");
        let other = blake3::hash(b"another");
        cache.store(&other, &component);
        let past = SystemTime::UNIX_EPOCH;
        File::options().write(true).open(fixture.entry()).and_then(|f| f.set_modified(past)).expect("aged");
        assert!(fixture.found(), "a use makes it young again");
        let old = cache.path(&cache.key(&other));
        File::options().write(true).open(&old).and_then(|f| f.set_modified(past)).expect("aged");
        cache.prune(entry + entry / 2).expect("pruned");
        assert!(fixture.found() && !old.exists());
    }
}
