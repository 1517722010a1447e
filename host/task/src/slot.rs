//! A slot: one thread with a single-threaded executor. Subtasks are made on the thread that runs them, so nothing in
//! them needs to be `Send`.

use std::{io, pin::Pin, thread};

use tokio::{
    runtime,
    sync::{mpsc, oneshot},
    task::LocalSet,
};

/// Makes a subtask's future on the slot's thread.
type Start = Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = ()>>> + Send>;

/// A slot's thread has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("slot {0} has been closed")]
pub struct SlotClosed(pub u32);

/// The handle of a slot. Dropping it lets the thread end once its subtasks have.
pub struct Slot {
    index: u32,
    starts: mpsc::UnboundedSender<Start>,
    thread: thread::JoinHandle<()>,
    /// Closed when the thread has nothing more to do.
    ended: oneshot::Receiver<()>,
}

impl Slot {
    /// Starts the thread.
    pub fn open(index: u32) -> io::Result<Self> {
        let (starts, incoming) = mpsc::unbounded_channel();
        let runtime = runtime::Builder::new_current_thread().enable_time().build()?;
        let (running, ended) = oneshot::channel::<()>();
        let run = move || {
            LocalSet::new().block_on(&runtime, run(incoming));
            drop((runtime, running));
        };
        let thread = thread::Builder::new().name(format!("slot-{index}")).spawn(run)?;
        Ok(Self { index, starts, thread, ended })
    }

    /// Runs what `make` makes on the slot's thread. The future has to report its own end.
    pub fn start<F, T>(&self, make: F) -> Result<(), SlotClosed>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Future<Output = ()> + 'static,
    {
        self.starts.send(Box::new(|| Box::pin(make()))).map_err(|_| SlotClosed(self.index))
    }

    /// Waits until all subtasks have ended and the thread has gone. Holds up nobody while it waits: a thread that hangs in the
    /// system, as in a write that nobody reads, ends with the process.
    pub async fn close(self) {
        let Self { starts, thread, ended, .. } = self;
        drop(starts);
        // Nothing is ever sent.
        drop(ended.await);
        // A panic of a subtask has been reported by the subtask; the executor itself has none.
        drop(thread.join());
    }
}

async fn run(mut incoming: mpsc::UnboundedReceiver<Start>) {
    let mut running = tokio::task::JoinSet::new();
    while let Some(start) = incoming.recv().await {
        running.spawn_local(start());
    }
    while running.join_next().await.is_some() {}
}

#[cfg(test)]
mod tests {
    use std::{rc::Rc, sync::mpsc, thread};

    use super::Slot;

    #[tokio::test]
    async fn subtasks_of_a_slot_share_its_thread_and_need_not_be_send() {
        let slot = Slot::open(3).expect("a thread");
        let (tx, rx) = mpsc::channel();
        for _ in 0..2 {
            let tx = tx.clone();
            let make = move || async move {
                let local = Rc::new(thread::current().name().map(str::to_owned));
                tokio::task::yield_now().await;
                tx.send((*local).clone()).expect("the test waits");
            };
            slot.start(make).expect("open");
        }
        slot.close().await;
        drop(tx);
        assert_eq!(rx.iter().collect::<Vec<_>>(), vec![Some("slot-3".to_owned()); 2]);
    }
}
