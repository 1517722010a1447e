//! Overdraft: what lets a subtask that waits for credit come to a barrier.
//!
//! A subtask takes a snapshot between two elements, so one that waits for credit in the middle of one would hold a barrier
//! up for as long as those behind it are slow. When it sees such a barrier the overdraft opens: what cannot be sent is
//! put by, and the element is processed to its end. The barrier then overtakes what was put by, which belongs to the
//! snapshot, and nothing else is processed before that has been sent. So what can be put by is what one element makes,
//! and at most [`MOST_BYTES`] of it: beyond that the subtask waits, and the barrier with it.

use std::{
    cell::Cell,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use millstream_net::Charged;
use millstream_protocol::CREDIT_BYTES;

/// Whether what cannot be sent may be put by. The outgoing edges of a subtask share it.
#[derive(Debug, Default)]
pub(crate) struct Overdraft {
    open: Cell<bool>,
    /// Credits.
    left: Cell<u32>,
    /// How many elements are put by, on all edges.
    put_by: Cell<usize>,
}

impl Overdraft {
    pub(crate) fn is_open(&self) -> bool {
        self.open.get()
    }

    /// Whether any element is put by.
    pub(crate) fn is_used(&self) -> bool {
        self.put_by.get() > 0
    }

    /// An element has been put by.
    pub(crate) fn put(&self) {
        self.put_by.set(self.put_by.get() + 1);
    }

    /// One that was has been sent.
    pub(crate) fn sent(&self) {
        self.put_by.set(self.put_by.get() - 1);
    }

    /// Whether an element may be put by, which is booked then.
    pub(crate) fn admit(&self, element: &Charged) -> bool {
        let credits = element.credits();
        let admitted = self.open.get() && (credits == 0 || self.left.get() > 0);
        if admitted {
            self.left.set(self.left.get().saturating_sub(credits));
        }
        admitted
    }

    fn open(&self) {
        self.open.set(true);
        self.left.set(MOST_CREDITS);
    }

    fn close(&self) {
        self.open.set(false);
    }
}

/// Does some work of a subtask, which stays where it is: it may be large, and this is done once a batch. While it waits, `look` says in how long a barrier overtakes, if one is in sight, and has
/// the task woken when there is something new; the overdraft opens when that time has come.
pub(crate) async fn unless_overtaken<W: Future>(
    mut work: Pin<&mut W>,
    overdraft: &Overdraft,
    mut look: impl FnMut(&mut Context<'_>) -> Option<Duration>,
) -> W::Output {
    let mut timer: Option<Pin<Box<tokio::time::Sleep>>> = None;
    let done = std::future::poll_fn(|cx| {
        if let Poll::Ready(done) = work.as_mut().poll(cx) {
            return Poll::Ready(done);
        }
        if overdraft.is_open() {
            return Poll::Pending;
        }
        while let Some(time) = look(cx) {
            if time.is_zero() {
                overdraft.open();
                return work.as_mut().poll(cx);
            }
            let timer = timer.insert(Box::pin(tokio::time::sleep(time)));
            if timer.as_mut().poll(cx).is_pending() {
                break;
            }
        }
        Poll::Pending
    })
    .await;
    overdraft.close();
    done
}

/// Bytes that a subtask puts by at most, and one batch.
const MOST_BYTES: usize = 32 << 20;
const MOST_CREDITS: u32 = (MOST_BYTES / CREDIT_BYTES) as u32;
