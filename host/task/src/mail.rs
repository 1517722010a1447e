//! Control messages to a subtask, taken before its next element.

use tokio::sync::mpsc;

/// A control message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mail {
    /// A source reads no further: what has been read is processed to the end, as if the input had ended there.
    Stop,
}

/// The receiving end of a subtask's control messages.
pub struct Mailbox {
    mails: mpsc::UnboundedReceiver<Mail>,
}

impl Mailbox {
    /// A mailbox and what to send to it with. Unbounded, but senders are few and each sends once a control step.
    pub fn new() -> (mpsc::UnboundedSender<Mail>, Mailbox) {
        let (tx, mails) = mpsc::unbounded_channel();
        (tx, Mailbox { mails })
    }

    /// The next message, if one is there.
    pub(crate) fn try_next(&mut self) -> Option<Mail> {
        self.mails.try_recv().ok()
    }

    /// Waits for a message; for ever if no sender is left. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Mail {
        match self.mails.recv().await {
            Some(mail) => mail,
            None => std::future::pending().await,
        }
    }
}
