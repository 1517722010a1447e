//! Streams of control messages: one a connection, messages in both directions, each a frame of its length (four bytes,
//! little-endian) and its postcard encoding. A length that no message has is followed by the reason for a refusal: what a
//! stream carries arrives, and what a connection is closed with may not.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Buf, Bytes, BytesMut};
use quinn::{Connection, RecvStream, SendStream};
use serde::{Serialize, de::DeserializeOwned};

use crate::{Peer, closing::Closing, endpoint::Inner, handshake::Greeted};

/// A control stream, both ways.
pub struct ControlStream {
    sender: ControlSender,
    receiver: ControlReceiver,
}

/// The half that sends.
pub struct ControlSender {
    /// There until it is dropped.
    stream: Option<SendStream>,
    unsent: Bytes,
    limit: usize,
    link: Arc<Link>,
}

/// The half that receives.
pub struct ControlReceiver {
    stream: RecvStream,
    received: BytesMut,
    limit: usize,
    link: Arc<Link>,
}

/// A message that could not be sent or received. After any but [`ControlError::Unencodable`], and one of this end's own
/// that is too large, the stream is of no more use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// One of the two ends was through with it.
    #[error("the connection to {peer} is closed: {reason}")]
    Closed {
        /// The other end.
        peer: Peer,
        /// What was said.
        reason: String,
    },
    /// The connection is lost: the process or the way to it is gone.
    #[error("the connection to {peer} is lost: {reason}")]
    Lost {
        /// The other end.
        peer: Peer,
        /// What is known of it.
        reason: String,
    },
    /// The other end does not want to speak to this one.
    #[error("{peer} refuses the connection: {reason}")]
    Refused {
        /// The other end.
        peer: Peer,
        /// What it says.
        reason: String,
    },
    /// A message is larger than this end, or the other one, takes.
    #[error("a message of {bytes} bytes {direction} {peer}: at most {limit} are taken")]
    TooLarge {
        /// The other end.
        peer: Peer,
        /// `to` or `from`.
        direction: &'static str,
        /// Its size.
        bytes: usize,
        /// What is taken.
        limit: usize,
    },
    /// What came is no message of the kind that was expected.
    #[error("what {peer} has sent is no {expected}: {problem}")]
    Undecodable {
        /// The other end.
        peer: Peer,
        /// The type that was expected.
        expected: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// A value has no encoding.
    #[error("a message to {peer} cannot be encoded: {problem}")]
    Unencodable {
        /// The other end.
        peer: Peer,
        /// Why.
        problem: String,
    },
}

impl ControlError {
    /// Whether the connection ended as it should: one of the ends was through with it.
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Closed { .. })
    }
}

impl ControlStream {
    pub(crate) fn new(greeted: Greeted, endpoint: Arc<Inner>) -> Self {
        let Greeted { peer, connection, send, receive, .. } = greeted;
        let limit = endpoint.options().frame_limit;
        let link = Arc::new(Link { peer, connection, endpoint, unfinished: Mutex::default() });
        let sender = ControlSender { stream: Some(send), unsent: Bytes::new(), limit, link: link.clone() };
        let receiver = ControlReceiver { stream: receive, received: BytesMut::new(), limit, link };
        Self { sender, receiver }
    }

    /// The other end.
    pub fn peer(&self) -> Peer {
        self.sender.link.peer
    }

    /// Sends a message: see [`ControlSender::send`].
    pub async fn send<T: Serialize + ?Sized>(&mut self, message: &T) -> Result<(), ControlError> {
        self.sender.send(message).await
    }

    /// The next message: see [`ControlReceiver::receive`].
    pub async fn receive<T: DeserializeOwned>(&mut self) -> Result<T, ControlError> {
        self.receiver.receive().await
    }

    /// Takes and sends messages of at most so many bytes from now on.
    pub fn set_frame_limit(&mut self, bytes: usize) {
        (self.sender.limit, self.receiver.limit) = (bytes, bytes);
    }

    /// Ends the connection and tells the other end why this one does not speak to it: it gets [`ControlError::Refused`].
    pub fn refuse(mut self, reason: &str) {
        let link = self.sender.link.clone();
        let refusal = Closing::Refused(reason.to_owned());
        let Some(mut stream) = self.sender.stream.take() else { return };
        self.sender.link.endpoint.spawn(async move {
            let told = async {
                let frame = [&REFUSAL.to_le_bytes()[..], refusal.reason().as_bytes()].concat();
                stream.write_all(&frame).await?;
                // It fails if the stream has ended, which is what is wanted.
                let _ = stream.finish();
                stream.stopped().await.map_err(quinn::WriteError::from)
            };
            let _ = tokio::time::timeout(link.endpoint.options().handshake_timeout, told).await;
            refusal.close(&link.connection);
        });
    }

    /// The two halves, for two tasks. The connection ends with the last of them.
    pub fn split(self) -> (ControlSender, ControlReceiver) {
        (self.sender, self.receiver)
    }
}

impl ControlSender {
    /// The other end.
    pub fn peer(&self) -> Peer {
        self.link.peer
    }

    /// Sends a message; it is under way then, and not yet received.
    ///
    /// # Cancel safety
    /// Cancelled, it has sent the message, or nothing of it, or its rest goes ahead of the next one: messages stay whole
    /// and in order.
    pub async fn send<T: Serialize + ?Sized>(&mut self, message: &T) -> Result<(), ControlError> {
        self.flush().await?;
        self.unsent = self.encode(message)?;
        self.flush().await
    }

    /// Ends this direction, and waits until the other end has all that was sent.
    ///
    /// # Cancel safety
    /// Cancelled, it has ended the direction, and what was sent is still delivered if the process stays.
    pub async fn finish(mut self) -> Result<(), ControlError> {
        self.flush().await?;
        let Some(mut stream) = self.stream.take() else { return Ok(()) };
        // It fails if the stream has ended, which is what is wanted.
        let _ = stream.finish();
        let stopped = stream.stopped();
        self.link.keep(stream);
        stopped.await.map(|_| ()).map_err(|error| self.link.error(quinn::WriteError::from(error).into()))
    }

    async fn flush(&mut self) -> Result<(), ControlError> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        while !self.unsent.is_empty() {
            let written = stream.write(&self.unsent).await.map_err(|error| self.link.error(error.into()))?;
            self.unsent.advance(written);
        }
        Ok(())
    }

    fn encode<T: Serialize + ?Sized>(&self, message: &T) -> Result<Bytes, ControlError> {
        let peer = self.link.peer;
        let frame = postcard::to_extend(message, vec![0; LENGTH]);
        let mut frame =
            frame.map_err(|error| ControlError::Unencodable { peer, problem: error.to_string() })?;
        let (bytes, limit) = (frame.len() - LENGTH, self.limit);
        let length = u32::try_from(bytes).ok().filter(|&length| bytes <= limit && length < REFUSAL);
        let length = length.ok_or(ControlError::TooLarge { peer, direction: "to", bytes, limit })?;
        frame[..LENGTH].copy_from_slice(&length.to_le_bytes());
        Ok(frame.into())
    }
}

impl Drop for ControlSender {
    fn drop(&mut self) {
        if let Some(mut stream) = self.stream.take() {
            // A message that was cancelled half-way is no message: whoever reads sees that it was cut.
            let _ = stream.finish();
            self.link.keep(stream);
        }
    }
}

impl ControlReceiver {
    /// The other end.
    pub fn peer(&self) -> Peer {
        self.link.peer
    }

    /// The next message.
    ///
    /// # Errors
    /// [`ControlError::Closed`] when the other end is through with it and all it sent has been received. What cannot be
    /// decoded ends the connection, and the other end is told.
    ///
    /// # Cancel safety
    /// Cancelled, it has received nothing.
    pub async fn receive<T: DeserializeOwned>(&mut self) -> Result<T, ControlError> {
        loop {
            if let Some(frame) = self.take_frame()? {
                return decode(&frame).map_err(|problem| self.undecodable::<T>(problem));
            }
            let chunk = self.stream.read_chunk(CHUNK, true).await;
            match chunk.map_err(|error| self.link.error(error.into()))? {
                Some(chunk) if self.received.len() < MOST_OF_A_REFUSAL || !self.is_refusal() => {
                    self.received.extend_from_slice(&chunk.bytes);
                }
                _ => return Err(self.ended()),
            }
        }
    }

    fn take_frame(&mut self) -> Result<Option<Bytes>, ControlError> {
        let Some(length) = self.received.first_chunk::<LENGTH>() else { return Ok(None) };
        if self.is_refusal() {
            // The reason goes on to the end of the stream.
            return Ok(None);
        }
        let bytes = u32::from_le_bytes(*length) as usize;
        if bytes > self.limit {
            let (peer, limit) = (self.link.peer, self.limit);
            let problem = format!("a message of {bytes} bytes: at most {limit} are taken");
            Closing::Violation(problem).close(&self.link.connection);
            return Err(ControlError::TooLarge { peer, direction: "from", bytes, limit });
        }
        if self.received.len() < LENGTH + bytes {
            return Ok(None);
        }
        self.received.advance(LENGTH);
        Ok(Some(self.received.split_to(bytes).freeze()))
    }

    fn is_refusal(&self) -> bool {
        self.received.first_chunk::<LENGTH>() == Some(&REFUSAL.to_le_bytes())
    }

    fn ended(&self) -> ControlError {
        let peer = self.link.peer;
        if self.is_refusal() {
            let reason = String::from_utf8_lossy(&self.received[LENGTH..]).into_owned();
            return ControlError::Refused { peer, reason };
        }
        match self.received.is_empty() {
            true => ControlError::Closed { peer, reason: "the other end is through".into() },
            false => ControlError::Lost { peer, reason: "it ended in the middle of a message".into() },
        }
    }

    fn undecodable<T>(&self, problem: String) -> ControlError {
        Closing::Violation(format!("a message cannot be decoded: {problem}")).close(&self.link.connection);
        let expected = std::any::type_name::<T>();
        ControlError::Undecodable { peer: self.link.peer, expected, problem }
    }
}

fn decode<T: DeserializeOwned>(frame: &[u8]) -> Result<T, String> {
    match postcard::take_from_bytes(frame) {
        Ok((message, [])) => Ok(message),
        Ok((_, rest)) => Err(format!("{} bytes are left over", rest.len())),
        Err(error) => Err(error.to_string()),
    }
}

/// What the halves share. The connection is closed once both have gone and what was sent has arrived.
struct Link {
    peer: Peer,
    connection: Connection,
    endpoint: Arc<Inner>,
    /// A stream whose end has been sent, and perhaps not received.
    unfinished: Mutex<Option<SendStream>>,
}

impl Link {
    fn keep(&self, stream: SendStream) {
        *self.unfinished.lock().unwrap_or_else(PoisonError::into_inner) = Some(stream);
    }

    fn error(&self, closing: Closing) -> ControlError {
        let peer = self.peer;
        match closing {
            Closing::Done(reason) | Closing::GivenUp(reason) => ControlError::Closed { peer, reason },
            Closing::Refused(reason) | Closing::Untrusted(reason) | Closing::Duplicate(reason) => {
                ControlError::Refused { peer, reason }
            }
            Closing::Violation(reason) | Closing::Lost(reason) => ControlError::Lost { peer, reason },
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let unfinished = self.unfinished.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (connection, endpoint) = (self.connection.clone(), self.endpoint.clone());
        self.endpoint.spawn(async move {
            if let Some(stream) = unfinished {
                let _ = tokio::time::timeout(endpoint.options().handshake_timeout, stream.stopped()).await;
            }
            Closing::Done(String::new()).close(&connection);
        });
    }
}

/// Bytes of a frame's length.
const LENGTH: usize = 4;
/// In place of a length: a reason follows, and then the end.
const REFUSAL: u32 = u32::MAX;
/// A reason is read to the end of the stream or to about here.
const MOST_OF_A_REFUSAL: usize = 4096;
/// Bytes that are taken from a stream at once.
const CHUNK: usize = 256 * 1024;
