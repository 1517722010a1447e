//! The sending end of a channel into another process.
//!
//! The subtask looks for credit and leaves frames in a queue, which credits bound; a task of the endpoint's writes them and
//! hears what the receiver grants. Between the two is a lock that either holds for a few instructions.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use millstream_protocol::credits_for;
use millstream_types::{Schema, StreamElement};
use quinn::{SendStream, VarInt};
use tokio::{sync::Notify, time::timeout};

use super::{ExecutionKey, Place, executions::columns};
use crate::{
    ChannelId, ChannelSender, Charged, Disconnected, Endpoint, Peer,
    closing::{Closing, describe},
    endpoint::Inner,
    wire::{
        batch::Encoder,
        event::WireEvent,
        frame::{FrameError, FrameReader, Kind, LITTLE_LEFT, message},
        message::{Accepted, Grant, LONGEST_MESSAGE, Open, Refused, Return, Want},
    },
};

/// Opens the sending end of a channel. It waits for the receiver while it is used.
pub(super) fn open(
    endpoint: &Endpoint,
    execution: ExecutionKey,
    channel: ChannelId,
    to: Place,
    schema: Schema,
) -> RemoteSender {
    let shared = Arc::<Shared>::default();
    let open = Open::new(execution, channel, columns(&schema));
    let task = run(endpoint.inner().clone(), to, open, shared.clone());
    endpoint.inner().spawn(task);
    let compression = endpoint.inner().options().compression;
    RemoteSender { channel, schema, compression, shared, _endpoint: endpoint.clone() }
}

/// The end that a subtask holds.
pub(super) struct RemoteSender {
    channel: ChannelId,
    schema: Schema,
    compression: bool,
    shared: Arc<Shared>,
    /// The channel lives on its threads.
    _endpoint: Endpoint,
}

/// What the subtask and the task that writes share.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// There is something to be written, or the subtask has gone.
    work: Notify,
}

#[derive(Default)]
struct State {
    phase: Phase,
    /// Frames to be written, in pieces.
    queue: VecDeque<Bytes>,
    /// Frames that have ever been put there; the first one asks for the channel.
    frames: u64,
    places: u64,
    granted: u64,
    /// Some of what has been granted is not the channel's own.
    floating: bool,
    /// Credits that have been used, or given back.
    used: u64,
    /// Elements that have been sent and take a place.
    sent: u64,
    consumed: u64,
    /// What the receiver has been told that this end waits for.
    wanted: Option<Want>,
    waker: Option<Waker>,
    /// The subtask has gone, and nothing more comes.
    finished: bool,
}

#[derive(Default)]
enum Phase {
    #[default]
    Opening,
    Open,
    Closed(Option<Arc<str>>),
}

impl State {
    fn balance(&self) -> u32 {
        u32::try_from(self.granted.saturating_sub(self.used)).unwrap_or(u32::MAX)
    }

    fn number(&mut self) -> u64 {
        self.frames += 1;
        self.frames
    }

    /// Tells the receiver what this end waits for, once.
    fn want(&mut self, want: Want) {
        if self.wanted != Some(want) {
            self.wanted = Some(want);
            let number = self.number();
            self.queue.push_back(message(Kind::Want, number, &want));
        }
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self, accepted: Accepted) {
        let mut state = self.lock();
        state.phase = Phase::Open;
        state.places = accepted.places;
        state.wake();
    }

    fn close(&self, reason: Option<String>) {
        let mut state = self.lock();
        if !matches!(state.phase, Phase::Closed(_)) {
            state.phase = Phase::Closed(reason.map(Arc::from));
        }
        state.queue.clear();
        state.wake();
    }
}

impl RemoteSender {
    fn disconnected(&self, reason: Option<Arc<str>>) -> Disconnected {
        Disconnected { channel: self.channel, reason }
    }

    /// Whether the element went out.
    fn try_send(&self, state: &mut State, element: &mut Option<Charged>) -> Result<bool, Disconnected> {
        let Some(charged) = element else { return Ok(true) };
        let event = WireEvent::of(&charged.element);
        if matches!(charged.element, StreamElement::Barrier(_) | StreamElement::EndOfInput) {
            // They take no place.
        } else if state.sent.saturating_sub(state.consumed) >= state.places {
            state.want(Want { credits: 0, place: true });
            return Ok(false);
        }
        match (&charged.element, event) {
            (StreamElement::Batch(batch), _) => {
                if charged.wire_credits > state.balance() {
                    state.want(Want { credits: charged.wire_credits, place: false });
                    return Ok(false);
                }
                let encoder = Encoder::new(batch, &self.schema)
                    .map_err(|error| self.disconnected(Some(error.to_string().into())))?;
                let credits = credits_for(encoder.length() as usize);
                charged.wire_credits = credits;
                if credits > state.balance() {
                    state.want(Want { credits, place: false });
                    return Ok(false);
                }
                state.used += u64::from(credits);
                let little = state.balance() < credits.saturating_mul(2);
                let number = state.number();
                let frame = encoder.encode(if little { LITTLE_LEFT } else { 0 }, number, self.compression);
                state.queue.extend(frame);
                state.sent += 1;
            }
            (StreamElement::Barrier(_) | StreamElement::EndOfInput, Some(event)) => {
                let number = state.number();
                state.queue.push_back(message(Kind::Event, number, &event));
            }
            (_, Some(event)) => {
                let number = state.number();
                state.queue.push_back(message(Kind::Event, number, &event));
                state.sent += 1;
            }
            (_, None) => {}
        }
        state.wanted = None;
        *element = None;
        Ok(true)
    }
}

impl ChannelSender for RemoteSender {
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        element: &mut Option<Charged>,
    ) -> Poll<Result<(), Disconnected>> {
        let mut state = self.shared.lock();
        match &state.phase {
            Phase::Open => {}
            Phase::Opening => {
                state.waker = Some(cx.waker().clone());
                return Poll::Pending;
            }
            Phase::Closed(reason) => return Poll::Ready(Err(self.disconnected(reason.clone()))),
        }
        let before = state.frames;
        let sent = self.try_send(&mut state, element)?;
        if !sent {
            state.waker = Some(cx.waker().clone());
        }
        if state.frames > before {
            self.shared.work.notify_one();
        }
        if sent { Poll::Ready(Ok(())) } else { Poll::Pending }
    }
}

impl Drop for RemoteSender {
    fn drop(&mut self) {
        self.shared.lock().finished = true;
        self.shared.work.notify_one();
    }
}

/// Keeps the channel going until the subtask has gone and everything has been written, or the channel is lost.
async fn run(endpoint: Arc<Inner>, to: Place, open: Open, shared: Arc<Shared>) {
    let channel = open.channel();
    let lost = match feed(&endpoint, to, open, &shared).await {
        Ok(()) => None,
        Err(Lost::Gone) => Some(None),
        Err(Lost::Because(reason)) => {
            tracing::debug!(%channel, %reason, "a channel to another process is lost");
            Some(Some(reason))
        }
    };
    if let Some(reason) = lost {
        shared.close(reason);
    }
}

/// How a channel ends before its sender.
enum Lost {
    /// The receiving subtask has gone.
    Gone,
    Because(String),
}

async fn feed(endpoint: &Arc<Inner>, to: Place, open: Open, shared: &Arc<Shared>) -> Result<(), Lost> {
    tokio::select! {
        opened = open_channel(endpoint, to, open) => {
            let (peer, send, reader, accepted) = opened?;
            shared.open(accepted);
            carry(peer, send, reader, shared).await
        }
        // Nothing has been sent, and nobody is there any more who would.
        () = gone(shared) => Ok(()),
    }
}

async fn gone(shared: &Shared) {
    while !shared.lock().finished {
        shared.work.notified().await;
    }
}

/// Asks the receiver for the channel until it has it.
async fn open_channel(
    endpoint: &Arc<Inner>,
    to: Place,
    open: Open,
) -> Result<(Peer, SendStream, FrameReader, Accepted), Lost> {
    let connections = endpoint.connections();
    let linked = connections.to(endpoint, to).await.map_err(Lost::Because)?;
    let peer = linked.peer;
    let lost = |closing| lost(peer, closing);
    let opened = async {
        let (mut send, receive) =
            linked.connection.open_bi().await.map_err(|error| lost(describe(&error)))?;
        let asked = message(Kind::Open, 0, &open);
        send.write_chunk(asked).await.map_err(|error| lost(error.into()))?;
        let mut reader = FrameReader::new(receive);
        let accepted = accepted(&mut reader, peer).await?;
        Ok((peer, send, reader, accepted))
    };
    // The receiver is through with waiting before, and says so.
    let limit = connections.opening_timeout().mul_f32(1.25);
    match timeout(limit, opened).await {
        Ok(opened) => opened,
        Err(_) => Err(Lost::Because(format!("{peer} has not opened the channel within {limit:?}"))),
    }
}

/// Carries what the subtask sends, and what the receiver says to that.
async fn carry(
    peer: Peer,
    mut send: SendStream,
    mut reader: FrameReader,
    shared: &Shared,
) -> Result<(), Lost> {
    let ended = tokio::select! {
        written = write(&mut send, shared) => written.map_err(|closing| lost(peer, closing)),
        heard = hear(&mut reader, shared, peer) => Err(heard),
    };
    match ended {
        Ok(()) => {
            // Until all of it has arrived the receiver may still be told of a loss, and grants are not refused.
            let arrived = send.stopped();
            tokio::select! { _ = arrived => {}, _ = hear(&mut reader, shared, peer) => {} }
            Ok(())
        }
        Err(Lost::Because(reason)) => {
            // It fails if the stream has ended, which is what is wanted.
            let _ = send.reset(VarInt::from_u32(CUT));
            Err(Lost::Because(reason))
        }
        Err(Lost::Gone) => Err(Lost::Gone),
    }
}

async fn accepted(reader: &mut FrameReader, peer: Peer) -> Result<Accepted, Lost> {
    let misbehaved = |error: FrameError| Lost::Because(told(peer, &error));
    match reader.frame(|_| LONGEST_MESSAGE).await.map_err(misbehaved)? {
        None => Err(Lost::Because(format!("{peer} has ended the channel before it was open"))),
        Some((header, payload)) if header.kind == Kind::Accepted => {
            payload.message(header.kind).map_err(misbehaved)
        }
        Some((header, payload)) if header.kind == Kind::Refused => {
            let Refused { reason } = payload.message(header.kind).map_err(misbehaved)?;
            Err(Lost::Because(format!("{peer} refuses the channel: {reason}")))
        }
        Some((header, _)) => Err(misbehaved(FrameError::Unexpected(header.kind))),
    }
}

/// Writes what the subtask leaves, and gives back credits that it does not use for a while.
async fn write(send: &mut SendStream, shared: &Shared) -> Result<(), Closing> {
    loop {
        let (mut frames, finished, superfluous) = {
            let mut state = shared.lock();
            let superfluous = state.floating && state.balance() > 0;
            (std::mem::take(&mut state.queue), state.finished, superfluous)
        };
        if !frames.is_empty() {
            send.write_all_chunks(frames.make_contiguous()).await?;
        } else if finished {
            // It fails if the stream has ended, which is what is wanted.
            let _ = send.finish();
            return Ok(());
        } else if !superfluous {
            shared.work.notified().await;
        } else if timeout(QUIET, shared.work.notified()).await.is_err() {
            give_back(&mut shared.lock());
        }
    }
}

/// Gives back what has not been used for a while, unless the subtask has been woken for it: once, as the channel gets its own
/// credits again at once.
fn give_back(state: &mut State) {
    let credits = state.balance();
    if credits > 0 && state.wanted.is_none() {
        state.floating = false;
        state.used += u64::from(credits);
        let number = state.number();
        state.queue.push_back(message(Kind::Return, number, &Return { credits }));
    }
}

/// Hears what the receiver grants until it ends the channel.
async fn hear(reader: &mut FrameReader, shared: &Shared, peer: Peer) -> Lost {
    loop {
        match reader.frame(|_| LONGEST_MESSAGE).await {
            Ok(Some((header, payload))) if header.kind == Kind::Grant => {
                match payload.message::<Grant>(header.kind) {
                    Ok(grant) => {
                        granted(&mut shared.lock(), grant);
                        if grant.floating {
                            shared.work.notify_one();
                        }
                    }
                    Err(error) => return Lost::Because(told(peer, &error)),
                }
            }
            Ok(Some((header, payload))) if header.kind == Kind::Refused => {
                return match payload.message::<Refused>(header.kind) {
                    Ok(Refused { reason }) => {
                        Lost::Because(format!("{peer} has ended the channel: {reason}"))
                    }
                    Err(error) => Lost::Because(told(peer, &error)),
                };
            }
            Ok(Some((header, _))) => {
                return Lost::Because(told(peer, &FrameError::Unexpected(header.kind)));
            }
            Ok(None) => return Lost::Gone,
            Err(FrameError::Lost(closing)) => return lost(peer, closing),
            Err(error) => return Lost::Because(told(peer, &error)),
        }
    }
}

fn granted(state: &mut State, grant: Grant) {
    // Both only grow, and nobody gains from saying otherwise.
    state.granted = state.granted.max(grant.granted);
    state.consumed = state.consumed.max(grant.consumed);
    state.floating = grant.floating;
    if state.wanted.is_some_and(|want| want.place) {
        state.wanted = None;
    }
    state.wake();
}

fn lost(peer: Peer, closing: Closing) -> Lost {
    match closing {
        Closing::GivenUp(_) => Lost::Gone,
        other => Lost::Because(told(peer, &FrameError::Lost(other))),
    }
}

/// What went wrong at the other end, with its name.
pub(super) fn told(peer: Peer, error: &FrameError) -> String {
    match error {
        FrameError::Lost(closing) => format!("the connection to {peer} is lost: {closing}"),
        other => format!("{peer} {other}"),
    }
}

/// How long credits beyond a channel's own stay with a sender that does not use them.
const QUIET: Duration = Duration::from_millis(20);
/// The code of a stream that the sender gives up.
const CUT: u32 = 1;
