//! Frames, and how they are read.

use std::collections::VecDeque;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use crc32c::crc32c_append;
use quinn::RecvStream;
use serde::{Serialize, de::DeserializeOwned};

use crate::closing::Closing;

/// What a frame is. The numbers are for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The sender asks for a channel: the first frame of a stream.
    Open = 1,
    /// Rows.
    Batch = 2,
    /// Any other element of the stream.
    Event = 3,
    /// The sender waits.
    Want = 4,
    /// The sender gives credits back.
    Return = 5,
    /// The receiver has the channel: its first frame.
    Accepted = 16,
    /// The receiver grants credits, and says what it has taken.
    Grant = 17,
    /// The receiver does not have the channel.
    Refused = 18,
}

impl Kind {
    const ALL: [Kind; 8] = [
        Kind::Open,
        Kind::Batch,
        Kind::Event,
        Kind::Want,
        Kind::Return,
        Kind::Accepted,
        Kind::Grant,
        Kind::Refused,
    ];
}

/// What stands before every payload: kind (1 byte), flags (1), zeros (2), length (4), number (8), crc32c (4), zeros (4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) flags: u8,
    /// Bytes of the payload.
    pub(crate) length: u32,
    /// How many frames have come before it on its stream, in its direction.
    pub(crate) number: u64,
    crc: u32,
}

/// Of a batch: its sender has little credit left.
pub(crate) const LITTLE_LEFT: u8 = 1;
/// Of a batch: the payload is compressed.
pub(crate) const COMPRESSED: u8 = 2;

/// A frame that is no frame, or not the one that may come. The text follows the name of whoever sent it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("{0}")]
    Lost(Closing),
    #[error("sent a frame of the unknown kind {0}")]
    Kind(u8),
    #[error("sent a header with {0} where zeros belong")]
    Reserved(String),
    #[error("sent the frame {found} where the frame {expected} belongs")]
    Number { found: u64, expected: u64 },
    #[error("sent a frame of the kind {kind:?} of {length} bytes where {limit} may come")]
    TooLong { kind: Kind, length: u32, limit: u32 },
    #[error("sent a damaged frame: its checksum is {found:08x} and should be {expected:08x}")]
    Damaged { found: u32, expected: u32 },
    #[error("sent a frame of the kind {0:?} where none may come")]
    Unexpected(Kind),
    #[error("sent a frame of the kind {kind:?} that cannot be decoded: {problem}")]
    Undecodable { kind: Kind, problem: String },
    #[error("ended the stream in the middle of a frame")]
    Cut,
    #[error("{0}")]
    Overrun(String),
}

impl Header {
    pub(crate) const LENGTH: usize = 24;

    /// The header of a payload that consists of these pieces, as bytes.
    pub(crate) fn encode<'a>(
        kind: Kind,
        flags: u8,
        number: u64,
        length: u32,
        payload: impl Iterator<Item = &'a [u8]>,
    ) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        (bytes[0], bytes[1]) = (kind as u8, flags);
        bytes[4..8].copy_from_slice(&length.to_le_bytes());
        bytes[8..16].copy_from_slice(&number.to_le_bytes());
        let crc = payload.fold(crc32c_append(0, &bytes[..CHECKED]), crc32c_append);
        bytes[16..20].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    fn decode(bytes: [u8; Self::LENGTH]) -> Result<Self, FrameError> {
        let kind = Kind::ALL.into_iter().find(|kind| *kind as u8 == bytes[0]);
        let kind = kind.ok_or(FrameError::Kind(bytes[0]))?;
        let reserved = [bytes[2], bytes[3], bytes[20], bytes[21], bytes[22], bytes[23]];
        if reserved != [0; 6] {
            return Err(FrameError::Reserved(format!("{reserved:02x?}")));
        }
        let mut rest = &bytes[4..20];
        let (length, number, crc) = (rest.get_u32_le(), rest.get_u64_le(), rest.get_u32_le());
        Ok(Self { kind, flags: bytes[1], length, number, crc })
    }

    fn check(&self, payload: &Payload) -> Result<(), FrameError> {
        let header = Self::encode(self.kind, self.flags, self.number, self.length, payload.pieces());
        let expected = u32::from_le_bytes([header[16], header[17], header[18], header[19]]);
        if self.crc == expected { Ok(()) } else { Err(FrameError::Damaged { found: self.crc, expected }) }
    }
}

/// A frame whose payload is postcard.
pub(crate) fn message<T: Serialize>(kind: Kind, number: u64, body: &T) -> Bytes {
    let body = postcard::to_stdvec(body).expect("messages are plain values, which have an encoding");
    let header = Header::encode(kind, 0, number, body.len() as u32, [&body[..]].into_iter());
    let mut frame = BytesMut::with_capacity(Header::LENGTH + body.len());
    frame.put_slice(&header);
    frame.put_slice(&body);
    frame.freeze()
}

/// The bytes of a payload, as they came.
#[derive(Debug, Default)]
pub(crate) struct Payload {
    pieces: VecDeque<Bytes>,
    length: usize,
}

impl Payload {
    fn push(&mut self, piece: Bytes) {
        self.length += piece.len();
        self.pieces.push_back(piece);
    }

    fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.pieces.iter().map(|piece| &piece[..])
    }

    /// Takes the first `length` bytes, which are there.
    fn split_to(&mut self, mut length: usize) -> Self {
        let mut taken = Self::default();
        self.length -= length;
        while length > 0 {
            let Some(mut piece) = self.pieces.pop_front() else { break };
            if piece.len() > length {
                self.pieces.push_front(piece.split_off(length));
            }
            length -= piece.len();
            taken.push(piece);
        }
        taken
    }

    /// The message that it is.
    pub(crate) fn message<T: DeserializeOwned>(mut self, kind: Kind) -> Result<T, FrameError> {
        let bytes = self.copy_to_bytes(self.length);
        match postcard::take_from_bytes(&bytes) {
            Ok((message, [])) => Ok(message),
            Ok((_, rest)) => {
                let problem = format!("{} bytes are left over", rest.len());
                Err(FrameError::Undecodable { kind, problem })
            }
            Err(error) => Err(FrameError::Undecodable { kind, problem: error.to_string() }),
        }
    }
}

impl Buf for Payload {
    fn remaining(&self) -> usize {
        self.length
    }

    fn chunk(&self) -> &[u8] {
        self.pieces.front().map_or(&[], |piece| &piece[..])
    }

    fn advance(&mut self, mut count: usize) {
        self.length = self.length.checked_sub(count).expect("no more is taken than there is");
        while count > 0 {
            let Some(first) = self.pieces.front_mut() else { return };
            let step = count.min(first.len());
            first.advance(step);
            count -= step;
            if first.is_empty() {
                self.pieces.pop_front();
            }
        }
    }
}

impl From<Vec<Bytes>> for Payload {
    fn from(pieces: Vec<Bytes>) -> Self {
        let mut payload = Self::default();
        pieces.into_iter().filter(|piece| !piece.is_empty()).for_each(|piece| payload.push(piece));
        payload
    }
}

/// Reads frames from a stream, one after the other.
pub(crate) struct FrameReader {
    stream: RecvStream,
    received: Payload,
    /// Of the frame whose payload is to come.
    header: Option<Header>,
    frames: u64,
}

impl FrameReader {
    pub(crate) fn new(stream: RecvStream) -> Self {
        Self { stream, received: Payload::default(), header: None, frames: 0 }
    }

    /// The next frame; none at the end of the stream. `limit` says how long its payload may be, and is asked before more
    /// of it is kept than comes at once.
    ///
    /// # Cancel safety
    /// Cancelled, it has read no frame.
    pub(crate) async fn frame(
        &mut self,
        limit: impl Fn(Kind) -> u32,
    ) -> Result<Option<(Header, Payload)>, FrameError> {
        let header = match self.header {
            Some(header) => header,
            None => match self.header().await? {
                Some(header) => header,
                None => return Ok(None),
            },
        };
        let limit = limit(header.kind);
        if header.length > limit {
            return Err(FrameError::TooLong { kind: header.kind, length: header.length, limit });
        }
        self.header = Some(header);
        if !self.fill(header.length as usize).await? {
            return Err(FrameError::Cut);
        }
        self.header = None;
        let payload = self.received.split_to(header.length as usize);
        header.check(&payload)?;
        Ok(Some((header, payload)))
    }

    /// Tells the other end that nothing more is read.
    pub(crate) fn stop(&mut self, code: u32) {
        // It fails if the stream has ended anyway.
        let _ = self.stream.stop(quinn::VarInt::from_u32(code));
    }

    async fn header(&mut self) -> Result<Option<Header>, FrameError> {
        if !self.fill(Header::LENGTH).await? {
            return if self.received.length == 0 { Ok(None) } else { Err(FrameError::Cut) };
        }
        let mut bytes = [0; Header::LENGTH];
        self.received.copy_to_slice(&mut bytes);
        let header = Header::decode(bytes)?;
        if header.number != self.frames {
            return Err(FrameError::Number { found: header.number, expected: self.frames });
        }
        self.frames += 1;
        Ok(Some(header))
    }

    /// Reads until `length` bytes are there; whether they are, or the stream has ended before.
    async fn fill(&mut self, length: usize) -> Result<bool, FrameError> {
        while self.received.length < length {
            let mut pieces: [Bytes; PIECES] = Default::default();
            let read = self.stream.read_chunks(&mut pieces).await;
            match read.map_err(|error| FrameError::Lost(error.into()))? {
                Some(count) => pieces.into_iter().take(count).for_each(|piece| self.received.push(piece)),
                None => return Ok(false),
            }
        }
        Ok(true)
    }
}

/// Bytes of a header that its checksum is over; all that follow it are zeros.
const CHECKED: usize = 16;
/// Pieces that are taken from a stream at once: each is what a packet has brought.
const PIECES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_bytes() {
        let frame = message(Kind::Grant, 3, &(5u64, 300u64, true));
        let hex: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
        expect_test::expect!["11000000040000000300000000000000d5afbedb0000000005ac0201"].assert_eq(&hex);
    }

    #[test]
    fn headers_are_checked() {
        let frame = message(Kind::Want, 1, &7u32);
        let (header, body) = frame.split_at(Header::LENGTH);
        let bytes: [u8; Header::LENGTH] = header.try_into().expect("a header");
        let payload = || Payload::from(vec![Bytes::copy_from_slice(body)]);
        let decoded = Header::decode(bytes).expect("good");
        assert_eq!((decoded.kind, decoded.length, decoded.number), (Kind::Want, 1, 1));
        assert_eq!(decoded.check(&payload()), Ok(()));
        for position in 0..Header::LENGTH {
            let mut damaged = bytes;
            damaged[position] ^= 1;
            let found = Header::decode(damaged).and_then(|header| header.check(&payload()));
            assert!(found.is_err(), "{position}");
        }
        assert!(decoded.check(&Payload::from(vec![Bytes::from_static(&[8])])).is_err());
    }

    #[test]
    fn payloads_are_cut_anywhere() {
        let pieces = || vec![Bytes::from_static(b"ab"), Bytes::from_static(b"cde"), Bytes::from_static(b"f")];
        for length in 0..=6 {
            let mut rest = Payload::from(pieces());
            let mut first = rest.split_to(length);
            let first = first.copy_to_bytes(first.remaining());
            let rest = rest.copy_to_bytes(rest.remaining());
            assert_eq!([first, rest].concat(), b"abcdef", "{length}");
        }
    }
}
