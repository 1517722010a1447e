//! Processing time of a subtask's chain.

use std::time::Duration;

use crate::{Chain, TaskError};

/// Calls the operators whose time has come.
pub(crate) async fn fire_processing_time(chain: &mut Chain) -> Result<(), TaskError> {
    match chain.next_wakeup() {
        None => Ok(()),
        Some(due) => {
            let now = chain.head().clock.now();
            if due <= now { chain.processing_time(now).await } else { Ok(()) }
        }
    }
}

/// Sleeps until the chain's next processing time; for ever if there is none.
pub(crate) fn until_wakeup(chain: &Chain) -> impl Future<Output = ()> + use<> {
    let time = chain.next_wakeup().map(|due| due.saturating_sub(chain.head().clock.now()).max(0));
    async move {
        match time {
            Some(millis) => tokio::time::sleep(Duration::from_millis(millis.unsigned_abs())).await,
            None => std::future::pending().await,
        }
    }
}
