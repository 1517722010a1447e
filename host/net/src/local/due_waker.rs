//! A waker that lets its task sleep until there is something for it to do.
//!
//! A receiver wakes the sending end for everything that it takes out. In this process that is whoever waits for credit; the
//! task that feeds a channel from another process has nothing to do before enough has come free to be granted, and to be
//! woken for each element would cost it more than the elements do. So what is registered looks first, on the receiver's
//! thread, and registers itself anew if it is too early.

use std::{
    sync::{
        Arc, Weak,
        atomic::{
            AtomicBool, AtomicU32, AtomicU64,
            Ordering::{Relaxed, SeqCst},
        },
    },
    task::{Context, Wake, Waker},
};

use futures_util::task::AtomicWaker;

use super::Link;

/// When the task is to be woken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due {
    /// Once no more credits than that are in use.
    pub(crate) in_use: u32,
    /// Once so many elements have been taken out.
    pub(crate) taken: u64,
    /// At once, whatever is taken out or given back.
    pub(crate) at_once: bool,
}

pub(super) struct DueWaker {
    link: Weak<Link>,
    task: AtomicWaker,
    in_use: AtomicU32,
    at_once: AtomicBool,
    /// Elements that are still to be taken out.
    left: AtomicU64,
}

impl DueWaker {
    pub(super) fn new(link: &Arc<Link>) -> Arc<Self> {
        Arc::new(Self {
            link: Arc::downgrade(link),
            task: AtomicWaker::new(),
            in_use: AtomicU32::new(u32::MAX),
            at_once: AtomicBool::new(true),
            left: AtomicU64::new(0),
        })
    }

    /// Has the task of `cx` woken when something is due. What is due already wakes nobody: the caller looks afterwards.
    pub(super) fn register(self: &Arc<Self>, cx: &Context<'_>, due: Due) {
        self.task.register(cx.waker());
        self.in_use.store(due.in_use, SeqCst);
        self.left.store(due.taken, SeqCst);
        self.at_once.store(due.at_once, SeqCst);
        if let Some(link) = self.link.upgrade() {
            link.sender.register(&Waker::from(self.clone()));
        }
    }

    fn is_due(&self, link: &Link) -> bool {
        self.at_once.load(SeqCst)
            || self.left.load(SeqCst) == 0
            || link.ledger().in_use() <= self.in_use.load(SeqCst)
            || link.receiver_gone.load(SeqCst)
    }
}

impl Wake for DueWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // It never goes below nothing: who takes the last one wakes the task.
        let _ = self.left.fetch_update(SeqCst, Relaxed, |left| left.checked_sub(1));
        let Some(link) = self.link.upgrade() else { return self.task.wake() };
        if !self.is_due(&link) {
            link.sender.register(&Waker::from(self.clone()));
            // Whoever was to wake it between the look and the registration has woken nobody.
            if !self.is_due(&link) {
                return;
            }
        }
        self.task.wake();
    }
}
