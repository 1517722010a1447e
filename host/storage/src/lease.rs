//! Holding an object where the place knows no locks: it is written again and again, always upon the version that was
//! written last, and who has not seen it change for a while takes it.
//!
//! Nobody's clock is compared with anybody else's: what counts is how long a version has stayed, on the clock of who
//! watches it. Who holds it gives up before anybody else can have waited that long.

mod holder;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use object_store::{Error, PutMode, Result, UpdateVersion};
use tokio::{
    sync::oneshot,
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

use self::holder::Holder;
use crate::{Storage, StorageError};

/// An object that this process holds. It is renewed in the background, until this is dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    object: Arc<Object>,
    renewing: JoinHandle<()>,
    lost: oneshot::Receiver<String>,
    is_lost: bool,
}

impl Lease {
    /// Takes an object; none if somebody else has it. If it cannot be seen from here whether the one who has it is still
    /// alive, this takes as long as a lease lasts without being renewed. Has to be called within a tokio runtime.
    pub(crate) async fn take(
        storage: &Storage,
        path: &str,
    ) -> std::result::Result<Option<Self>, StorageError> {
        let object = Object { storage: storage.clone(), path: path.to_owned(), holder: Holder::this() };
        let taken = object.take().await;
        let taken =
            taken.map_err(|e| StorageError::access(storage.name_of(path), "take hold of the run", e))?;
        let Some(version) = taken else { return Ok(None) };
        object.check().await?;
        let object = Arc::new(object);
        let (lose, lost) = oneshot::channel();
        let renewed = Arc::clone(&object);
        let renewing = tokio::spawn(async move {
            // Nobody may be waiting for it.
            let _ = lose.send(renewed.renew(version).await);
        });
        Ok(Some(Self { object, renewing, lost, is_lost: false }))
    }

    /// Waits until the object is not held any more, and says why.
    pub(crate) async fn lost(&mut self) -> String {
        let why = (&mut self.lost).await;
        self.is_lost = true;
        why.unwrap_or_else(|_| "it is not renewed any more".to_owned())
    }

    /// Lets go of it, unless it is somebody else's by now.
    pub(crate) async fn release(mut self) {
        self.renewing.abort();
        if self.is_lost || self.lost.try_recv().is_ok() {
            return;
        }
        if let Err(error) = self.object.storage.delete(&self.object.path).await {
            tracing::warn!(error = error.in_full(), "the hold on the run is left to expire");
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.renewing.abort();
    }
}

/// What is held, and as whom.
#[derive(Debug)]
struct Object {
    storage: Storage,
    path: String,
    holder: Holder,
}

impl Object {
    /// Checks that what was written is there: not everything that answers is such a store.
    async fn check(&self) -> std::result::Result<(), StorageError> {
        let path = self.storage.name_of(&self.path);
        let found = self.storage.get_version(&self.path).await;
        let found = found.map_err(|e| StorageError::access(&path, "read the object", e))?;
        let is_own = |(text, _): &(Bytes, UpdateVersion)| self.is_own(text);
        if found.as_ref().is_some_and(is_own) {
            return Ok(());
        }
        let problem =
            "what has just been written there is not there: is it a store of S3 that answers?".to_owned();
        Err(StorageError::Damaged { path, problem })
    }

    fn is_own(&self, text: &Bytes) -> bool {
        Holder::parse(&String::from_utf8_lossy(text)).as_ref() == Some(&self.holder)
    }

    /// Takes hold of it, unless somebody else has it.
    async fn take(&self) -> Result<Option<UpdateVersion>> {
        match self.put(PutMode::Create, 0).await {
            Err(error) if is_other_version(&error) => {}
            created => return created.map(Some),
        }
        let Some(version) = self.abandoned().await? else { return Ok(None) };
        self.renewed(version, 0).await
    }

    /// Its version, once whoever holds it is seen to have gone; none if somebody does hold it.
    async fn abandoned(&self) -> Result<Option<UpdateVersion>> {
        let mut first = None;
        let begun = Instant::now();
        loop {
            // Whoever let go of it meanwhile was there a moment ago, so that somebody else may come before.
            let Some((text, version)) = self.storage.get_version(&self.path).await? else { return Ok(None) };
            let holder = Holder::parse(&String::from_utf8_lossy(&text));
            // A request that was repeated may have been answered the second time, and done the first.
            if holder == Some(self.holder.clone()) || holder.as_ref().is_some_and(Holder::has_gone) {
                return Ok(Some(version));
            }
            let first = first.get_or_insert_with(|| version.clone());
            if holder.is_some_and(|holder| holder.is_here()) || *first != version {
                return Ok(None);
            }
            if begun.elapsed() >= LEASE {
                return Ok(Some(version));
            }
            sleep(WATCH).await;
        }
    }

    /// Renews it for as long as it is held; says why it is not any more.
    async fn renew(&self, mut version: UpdateVersion) -> String {
        let place = self.storage.name_of(&self.path);
        let mut renewed = Instant::now();
        for count in 1.. {
            sleep(RENEW.min(HOLD.saturating_sub(renewed.elapsed()))).await;
            let left = HOLD.saturating_sub(renewed.elapsed());
            let begun = Instant::now();
            match timeout(left, self.renewed(version.clone(), count)).await {
                Ok(Ok(Some(next))) => (version, renewed) = (next, begun),
                Ok(Ok(None)) => return format!("another process has taken {place}, or it has been deleted"),
                Ok(Err(error)) => tracing::warn!(%error, "the hold on the run is not renewed"),
                Err(_) => {}
            }
            if renewed.elapsed() >= HOLD {
                break;
            }
        }
        format!("{place} could not be renewed for {} s, and another process may take it", HOLD.as_secs())
    }

    /// Writes it upon a version; none if it has another one, of somebody else.
    async fn renewed(&self, version: UpdateVersion, count: u64) -> Result<Option<UpdateVersion>> {
        match self.put(PutMode::Update(version), count).await {
            Err(error) if is_other_version(&error) => {}
            renewed => return renewed.map(Some),
        }
        let found = self.storage.get_version(&self.path).await?;
        Ok(found.and_then(|(text, version)| self.is_own(&text).then_some(version)))
    }

    async fn put(&self, mode: PutMode, count: u64) -> Result<UpdateVersion> {
        let text = self.holder.text(count);
        self.storage.put_whole(&self.path, text.into(), mode).await
    }
}

fn is_other_version(error: &Error) -> bool {
    matches!(error, Error::AlreadyExists { .. } | Error::Precondition { .. } | Error::NotFound { .. })
}

/// How long a version has to stay until it may be taken.
const LEASE: Duration = Duration::from_secs(20);
/// How long it counts as held without having been renewed.
const HOLD: Duration = Duration::from_secs(15);
const RENEW: Duration = Duration::from_secs(4);
const WATCH: Duration = Duration::from_secs(1);
