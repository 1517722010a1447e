//! Modules that a worker has been given, by digest: a file each.

use std::{
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use millstream_control::{ModuleDigest, Opening};
use millstream_net::{ConnectError, ControlError, Endpoint, Role};

use crate::module_digest;

/// A folder of modules.
pub(super) struct ModuleCache {
    folder: PathBuf,
}

/// A module that cannot be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoModule {
    #[error("the coordinator cannot be asked for module {0}: {1}")]
    Connect(ModuleDigest, ConnectError),
    #[error("the coordinator does not hand over module {0}: {1}")]
    Control(ModuleDigest, ControlError),
    #[error("the coordinator has no module {0}")]
    Unknown(ModuleDigest),
    #[error("the coordinator has handed over something else as module {0}")]
    Other(ModuleDigest),
}

impl ModuleCache {
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// The bytes of a module: those that are here, if they are whole, else the coordinator's.
    pub(super) async fn get(
        &self,
        digest: ModuleDigest,
        endpoint: &Endpoint,
        coordinator: SocketAddr,
    ) -> Result<Arc<[u8]>, NoModule> {
        let path = self.folder.join(format!("{digest}.wasm"));
        if let Some(found) = fs::read(&path).ok().filter(|bytes| module_digest(bytes) == digest) {
            return Ok(found.into());
        }
        // A stream of its own, so that nothing waits behind it.
        let connected = endpoint.connect_control(coordinator, Role::Coordinator).await;
        let (_, mut stream) = connected.map_err(|e| NoModule::Connect(digest, e))?;
        let failed = |e| NoModule::Control(digest, e);
        stream.send(&Opening::Module(digest)).await.map_err(failed)?;
        let bytes: Option<Vec<u8>> = stream.receive().await.map_err(failed)?;
        let bytes = bytes.ok_or(NoModule::Unknown(digest))?;
        if module_digest(&bytes) != digest {
            return Err(NoModule::Other(digest));
        }
        if let Err(error) = self.keep(&path, &bytes) {
            tracing::warn!(%error, path = %path.display(), "a module cannot be kept and will be fetched again");
        }
        Ok(bytes.into())
    }

    /// Under another name until it is whole, which it gets by one step whoever else does the same.
    fn keep(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let part = tempfile::NamedTempFile::new_in(&self.folder)?;
        fs::write(part.path(), bytes)?;
        part.persist(path).map(drop).map_err(|e| e.error)
    }
}
