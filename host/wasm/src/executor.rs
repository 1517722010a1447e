//! Runs one call to its end where there is no executor: planning asks modules for their manifests synchronously.

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

/// Polls until the future is ready. A guest is only ever pending because it has computed for a tick, so there is
/// nothing to sleep for.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}
