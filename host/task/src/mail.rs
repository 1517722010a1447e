//! Control messages to a subtask, taken before its next element.

use std::{
    collections::VecDeque,
    task::{Context, Poll},
};

use millstream_types::Barrier;
use tokio::sync::mpsc;

/// A control message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mail {
    /// A source reads no further: what has been read is processed to the end, as if the input had ended there.
    Stop,
    /// A checkpoint has been triggered: sources put its barrier into their streams.
    Checkpoint(Barrier),
    /// A checkpoint is complete.
    Complete {
        /// The checkpoint.
        checkpoint: u64,
        /// Whether there will be no other: a subtask that has ended, or stands still at it, closes.
        last: bool,
    },
    /// A checkpoint has been given up.
    Abort(u64),
}

/// The receiving end of a subtask's control messages.
pub struct Mailbox {
    mails: mpsc::UnboundedReceiver<Mail>,
    /// What has been looked at and not been taken.
    seen: VecDeque<Mail>,
}

impl Mailbox {
    /// A mailbox and what to send to it with. Unbounded, but senders are few and each sends once a control step.
    pub fn new() -> (mpsc::UnboundedSender<Mail>, Mailbox) {
        let (tx, mails) = mpsc::unbounded_channel();
        (tx, Mailbox { mails, seen: VecDeque::new() })
    }

    /// The next message, if one is there.
    pub(crate) fn try_next(&mut self) -> Option<Mail> {
        self.seen.pop_front().or_else(|| self.mails.try_recv().ok())
    }

    /// The barriers of the checkpoints that have been triggered, by messages that are not taken; has the task woken when
    /// there is another one.
    pub(crate) fn look(&mut self, cx: &mut Context<'_>) -> impl Iterator<Item = &Barrier> {
        while let Poll::Ready(Some(mail)) = self.mails.poll_recv(cx) {
            self.seen.push_back(mail);
        }
        self.seen.iter().filter_map(|mail| match mail {
            Mail::Checkpoint(barrier) => Some(barrier),
            _ => None,
        })
    }

    /// Waits for a message; for ever if no sender is left. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Mail {
        if let Some(mail) = self.seen.pop_front() {
            return mail;
        }
        match self.mails.recv().await {
            Some(mail) => mail,
            None => std::future::pending().await,
        }
    }
}
