//! The receiving end of a channel from another process: what comes is checked and put into a channel of this one.

use std::{future::poll_fn, sync::Arc, task::Poll};

use bytes::Bytes;
use millstream_protocol::{Ask, CREDIT_BYTES, GrantBook, credits_for};
use millstream_types::{Schema, StreamElement};
use quinn::{RecvStream, SendStream};
use tokio::time::timeout;

use super::{Connections, connections::Linked, executions::Expected, outbound::told};
use crate::{
    Ahead, Charged,
    closing::Closing,
    local::{Due, InboundEnd},
    wire::{
        batch::{decode, decompress, uncompressed_length},
        event::WireEvent,
        frame::{COMPRESSED, FrameError, FrameReader, Header, Kind, LITTLE_LEFT, Payload, message},
        message::{Accepted, Grant, LONGEST_MESSAGE, LONGEST_OPEN, Open, Refused, Return, Want},
    },
};

/// Serves a stream that the process at the other end has opened. What it should not do costs it the connection.
pub(super) async fn serve(
    connections: Arc<Connections>,
    linked: Linked,
    send: SendStream,
    receive: RecvStream,
) {
    let (peer, reader) = (linked.peer, FrameReader::new(receive));
    match receive_all(&connections, &linked, send, reader).await {
        Ok(()) | Err(FrameError::Lost(_)) => {}
        Err(error) => {
            tracing::warn!(%peer, %error, "a connection is cut: the other end does what it should not");
            Closing::Violation(format!("it {error}")).close(&linked.connection);
        }
    }
}

async fn receive_all(
    connections: &Connections,
    linked: &Linked,
    send: SendStream,
    mut reader: FrameReader,
) -> Result<(), FrameError> {
    let limit = connections.opening_timeout();
    let mut writer = Writer { send, frames: 0 };
    let Ok(open) = timeout(limit, read_open(&mut reader)).await else {
        return Err(FrameError::Overrun(format!("has not said within {limit:?} which channel it opens")));
    };
    let Some(open) = open? else { return Ok(()) };
    let claimed = timeout(limit, connections.executions().claim(linked.peer, &open)).await;
    let claimed = claimed.unwrap_or_else(|_| {
        Err(format!("{} of {} has not been opened here within {limit:?}", open.channel(), open.execution()))
    });
    let Expected { end, schema, .. } = match claimed {
        Ok(expected) => expected,
        Err(reason) => {
            tracing::info!(peer = %linked.peer, %reason, "a channel is refused");
            writer.refuse(reason).await;
            reader.stop(REFUSED);
            return Ok(());
        }
    };
    let accepted = Accepted { exclusive: end.exclusive(), places: end.places() as u64 };
    writer.write(Kind::Accepted, &accepted).await;
    let book = GrantBook::new(end.exclusive());
    let mut channel = Inbound {
        end,
        schema,
        book,
        reader,
        writer,
        reported: Grant { granted: 0, consumed: 0, floating: false },
        place_wanted: false,
    };
    let ended = channel.run().await;
    if let Err(error) = &ended {
        channel.end.set_reason(&told(linked.peer, error));
    }
    // What was granted and not used is for the gate's other channels.
    channel.end.take_back(channel.book.unused());
    ended
}

async fn read_open(reader: &mut FrameReader) -> Result<Option<Open>, FrameError> {
    let limit = |kind| if kind == Kind::Open { LONGEST_OPEN } else { 0 };
    match reader.frame(limit).await? {
        Some((header, payload)) if header.kind == Kind::Open => payload.message(header.kind).map(Some),
        Some((header, _)) => Err(FrameError::Unexpected(header.kind)),
        None => Ok(None),
    }
}

/// A channel that is fed from another process.
struct Inbound {
    end: InboundEnd,
    schema: Schema,
    book: GrantBook,
    reader: FrameReader,
    writer: Writer,
    /// What the sender has been told.
    reported: Grant,
    /// The sender waits for a place.
    place_wanted: bool,
}

enum Next {
    Frame(Header, Payload),
    /// Something can be granted or is to be reported, or the receiver has gone.
    Woken,
    End,
}

impl Inbound {
    /// Feeds the channel until its sender ends it or its receiver has gone.
    async fn run(&mut self) -> Result<(), FrameError> {
        loop {
            if self.end.is_abandoned() {
                self.reader.stop(GONE);
                return Ok(());
            }
            self.grant();
            self.report().await;
            match self.next().await? {
                Next::Frame(header, payload) => self.handle(header, payload)?,
                Next::Woken => {}
                Next::End => return Ok(()),
            }
        }
    }

    async fn next(&mut self) -> Result<Next, FrameError> {
        let Self { end, book, reader, reported, place_wanted, .. } = self;
        let (book, reported, place_wanted) = (&*book, *reported, *place_wanted);
        end.set_waiting(book.is_waiting());
        let unused = book.unused();
        let longest = |kind| match kind {
            Kind::Batch => most_bytes(unused),
            Kind::Event | Kind::Want | Kind::Return => LONGEST_MESSAGE,
            _ => 0,
        };
        let woken = poll_fn(move |cx| {
            // Registered first: what happens between a look and the registration would wake nobody.
            end.register(cx, when_due(end, book, reported, place_wanted));
            let due = end.is_abandoned() || is_due(end, reported, place_wanted) || can_grant(end, book);
            if due { Poll::Ready(()) } else { Poll::Pending }
        });
        tokio::select! {
            biased;
            () = woken => Ok(Next::Woken),
            frame = reader.frame(longest) => match frame {
                Ok(Some((header, payload))) => Ok(Next::Frame(header, payload)),
                Ok(None) => Ok(Next::End),
                Err(FrameError::TooLong { kind: Kind::Batch, length, .. }) => Err(FrameError::Overrun(format!(
                    "sent {} credits' worth of rows without being granted more than {unused}",
                    credits_for(length as usize)
                ))),
                Err(error) => Err(error),
            },
        }
    }

    fn handle(&mut self, header: Header, mut payload: Payload) -> Result<(), FrameError> {
        match header.kind {
            Kind::Batch => {
                let compressed = header.flags & COMPRESSED != 0;
                let length = if compressed { uncompressed_length(&mut payload)? } else { header.length };
                let cost = credits_for(length as usize);
                let (little, in_use) = (header.flags & LITTLE_LEFT != 0, self.end.in_use());
                let charged = self.book.handle_data(cost, little, in_use);
                charged.map_err(|error| FrameError::Overrun(format!("sent without credit: {error}")))?;
                let payload = if compressed { decompress(payload, length)? } else { payload };
                let batch = decode(payload, &self.schema)?;
                self.push(Charged::arrived(StreamElement::Batch(batch), cost))
            }
            Kind::Event => match payload.message::<WireEvent>(header.kind)?.into_element() {
                StreamElement::Barrier(barrier) => {
                    self.end.announce(Ahead::Barrier(barrier));
                    Ok(())
                }
                StreamElement::EndOfInput => {
                    self.end.announce(Ahead::End);
                    Ok(())
                }
                element => self.push(Charged::arrived(element, 0)),
            },
            Kind::Want => {
                let want = payload.message::<Want>(header.kind)?;
                self.place_wanted |= want.place;
                if want.credits > 0 {
                    self.book.handle_want(want.credits);
                }
                Ok(())
            }
            Kind::Return => {
                let Return { credits } = payload.message(header.kind)?;
                let returned = self.book.handle_return(credits);
                returned.map_err(|error| FrameError::Overrun(format!("returned credits: {error}")))?;
                self.end.take_back(credits);
                Ok(())
            }
            other => Err(FrameError::Unexpected(other)),
        }
    }

    fn push(&mut self, element: Charged) -> Result<(), FrameError> {
        let places = self.end.places();
        let pushed = self.end.push(element);
        pushed.map_err(|_| FrameError::Overrun(format!("sent more than the {places} elements that may wait")))
    }

    /// Takes what the ledger gives for the sender.
    fn grant(&mut self) {
        for ask in self.book.asks(self.end.in_use()) {
            let (credits, unused) = match ask {
                Ask::Needed(credits) => (credits, self.book.unused()),
                Ask::Own(credits) => (credits, 0),
                Ask::Welcome(credits) => (credits.min(self.end.spare()), 0),
            };
            if credits > 0 && self.end.grant(credits, unused) {
                self.book.handle_granted(ask, credits);
            }
        }
    }

    /// Tells the sender what it has been granted, and what has been consumed once that is worth a message.
    async fn report(&mut self) {
        if self.book.granted() == self.reported.granted
            && !is_due(&self.end, self.reported, self.place_wanted)
        {
            return;
        }
        let floating = self.end.in_use() > self.end.exclusive();
        self.reported = Grant { granted: self.book.granted(), consumed: self.end.consumed(), floating };
        self.place_wanted = false;
        self.writer.write(Kind::Grant, &self.reported).await;
    }
}

fn is_due(end: &InboundEnd, reported: Grant, place_wanted: bool) -> bool {
    let news = end.consumed() - reported.consumed;
    news > 0 && (place_wanted || news >= (end.places() as u64).div_ceil(REPORTS))
}

/// When there is something to be granted or reported next.
fn when_due(end: &InboundEnd, book: &GrantBook, reported: Grant, place_wanted: bool) -> Due {
    let unreported = end.consumed() - reported.consumed;
    let taken = (end.places() as u64).div_ceil(REPORTS).saturating_sub(unreported);
    Due { in_use: book.next_ask(), taken, at_once: place_wanted || book.is_waiting() }
}

/// Whether the ledger would give anything that the sender has a use for.
fn can_grant(end: &InboundEnd, book: &GrantBook) -> bool {
    book.asks(end.in_use()).any(|ask| match ask {
        Ask::Needed(credits) => end.would_grant(credits, book.unused()),
        Ask::Own(_) => true,
        Ask::Welcome(_) => end.spare() > 0,
    })
}

/// The longest payload that so many credits pay for.
fn most_bytes(credits: u32) -> u32 {
    u32::try_from(credits as usize * CREDIT_BYTES).unwrap_or(u32::MAX)
}

/// What is said to the sender. That it does not listen shows in what it sends.
struct Writer {
    send: SendStream,
    frames: u64,
}

impl Writer {
    async fn write<T: serde::Serialize>(&mut self, kind: Kind, body: &T) {
        let frame: Bytes = message(kind, self.frames, body);
        self.frames += 1;
        let _ = self.send.write_chunk(frame).await;
    }

    async fn refuse(mut self, reason: String) {
        self.write(Kind::Refused, &Refused { reason }).await;
        // It fails if the stream has ended, which is what is wanted.
        let _ = self.send.finish();
        let _ = self.send.stopped().await;
    }
}

/// How often the sender hears what has been consumed while all places are taken once.
const REPORTS: u64 = 4;
/// The codes of streams that are read no further.
const REFUSED: u32 = 1;
const GONE: u32 = 2;
