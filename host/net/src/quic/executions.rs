//! The attempts that have channels into this process, and who may feed these.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use millstream_types::Schema;
use tokio::sync::Notify;

use super::ExecutionKey;
use crate::{ChannelId, NodeId, Peer, local::InboundEnd, wire::message::Open};

/// A channel that is to be fed from another process.
pub(super) struct Expected {
    /// Its end here.
    pub(super) end: InboundEnd,
    /// Who may.
    pub(super) sender: NodeId,
    /// The rows.
    pub(super) schema: Schema,
}

/// What an attempt expects.
#[derive(Default)]
pub(super) struct Incoming {
    channels: Mutex<Channels>,
}

#[derive(Default)]
struct Channels {
    expected: HashMap<ChannelId, Expected>,
    fed: HashSet<ChannelId>,
}

impl Incoming {
    pub(super) fn expect(&self, expected: Expected) {
        lock(&self.channels).expected.insert(expected.end.channel(), expected);
    }

    /// Takes a channel for whoever asks for it; none if it is not there yet.
    fn take(&self, peer: Peer, open: &Open) -> Result<Option<Expected>, String> {
        let (mut channels, channel) = (lock(&self.channels), open.channel());
        let Channels { expected, fed } = &mut *channels;
        if fed.contains(&channel) {
            return Err(format!("{channel} is open already"));
        }
        let Some(Expected { sender, schema, .. }) = expected.get(&channel) else { return Ok(None) };
        if *sender != peer.node {
            return Err(format!("{channel} is another process'"));
        }
        let columns = columns(schema);
        if columns != open.columns {
            let (found, here) = (open.columns.join(", "), columns.join(", "));
            return Err(format!("{channel} has the columns {here} here, and {found} at the sender"));
        }
        fed.insert(channel);
        Ok(expected.remove(&channel))
    }
}

/// The columns of rows, each with its type.
pub(super) fn columns(schema: &Schema) -> Vec<String> {
    schema.fields().iter().map(ToString::to_string).collect()
}

/// All attempts that are known here.
#[derive(Default)]
pub(crate) struct Executions {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    running: HashMap<ExecutionKey, Arc<Incoming>>,
    /// Of each job the highest number of an attempt, and whether that one is over.
    newest: HashMap<u128, (u32, bool)>,
    /// Jobs whose newest attempt is over, the longest ago first.
    over: VecDeque<u128>,
}

impl Executions {
    pub(super) fn begin(&self, execution: ExecutionKey) -> Arc<Incoming> {
        let incoming = Arc::<Incoming>::default();
        let mut state = lock(&self.state);
        state.running.insert(execution, incoming.clone());
        let newest = state.newest.entry(execution.job).or_insert((execution.attempt, false));
        if execution.attempt >= newest.0 {
            *newest = (execution.attempt, false);
        }
        drop(state);
        self.announce();
        incoming
    }

    /// The attempt is over, if it is still that which has `incoming`.
    pub(super) fn end(&self, execution: ExecutionKey, incoming: &Arc<Incoming>) {
        let mut state = lock(&self.state);
        let State { running, newest, over } = &mut *state;
        if running.get(&execution).is_some_and(|running| Arc::ptr_eq(running, incoming)) {
            running.remove(&execution);
            if let Some(newest) =
                newest.get_mut(&execution.job).filter(|newest| newest.0 == execution.attempt)
            {
                newest.1 = true;
                over.push_back(execution.job);
            }
        }
        while over.len() > REMEMBERED {
            if let Some(job) = over.pop_front().filter(|job| newest.get(job).is_some_and(|newest| newest.1)) {
                newest.remove(&job);
            }
        }
        drop(state);
        // What nobody has taken has nobody to wait for any more.
        lock(&incoming.channels).expected.clear();
        self.announce();
    }

    /// Has everybody look again who waits for an attempt or a channel.
    pub(super) fn announce(&self) {
        self.changed.notify_waiters();
    }

    /// Waits for the channel that somebody asks for, and takes it. A refusal says why.
    pub(super) async fn claim(&self, peer: Peer, open: &Open) -> Result<Expected, String> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Whatever is announced from here on wakes it.
            changed.as_mut().enable();
            if let Some(incoming) = self.running(open.execution())?
                && let Some(expected) = incoming.take(peer, open)?
            {
                return Ok(expected);
            }
            changed.await;
        }
    }

    fn running(&self, execution: ExecutionKey) -> Result<Option<Arc<Incoming>>, String> {
        let state = lock(&self.state);
        match state.newest.get(&execution.job) {
            Some((newest, _)) if *newest > execution.attempt => {
                Err(format!("{execution} is over: attempt {newest} has begun"))
            }
            Some((newest, true)) if *newest == execution.attempt => Err(format!("{execution} is over")),
            _ => Ok(state.running.get(&execution).cloned()),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Jobs of which it is remembered that they are over. Whoever asks for an older one waits in vain instead.
const REMEMBERED: usize = 1024;
