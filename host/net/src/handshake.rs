//! The handshake: what the two ends of a connection tell each other on its first stream, before anything else.
//!
//! TLS has checked by then that the other's certificate is good and of this cluster's authority. Each message begins the
//! same way in every version: eight magic bytes, version and length as two bytes each, little-endian. So whoever speaks
//! another version, or something else altogether, can be told so. Refusals close the connection with the reason as text.

use std::{net::SocketAddr, time::Duration};

use quinn::{Connection, RecvStream, SendStream};
use rustls::pki_types::CertificateDer;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    ClusterId, NodeId, Peer, Role,
    closing::{Closing, describe},
    identity::names_role,
    quic::Connections,
};

/// What a process says of itself.
#[derive(Clone, Debug)]
pub(crate) struct Introduction {
    pub(crate) cluster: ClusterId,
    pub(crate) role: Role,
    pub(crate) node: NodeId,
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Purpose {
    /// One stream of control messages, which is the one of the handshake.
    Control,
    /// The channels between two workers.
    Data,
}

/// A connection whose ends know each other.
pub(crate) struct Greeted {
    pub(crate) peer: Peer,
    pub(crate) purpose: Purpose,
    pub(crate) connection: Connection,
    pub(crate) send: SendStream,
    pub(crate) receive: RecvStream,
}

/// A handshake that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HandshakeError {
    #[error("{0}")]
    Lost(Closing),
    #[error("it does not speak millstream's protocol")]
    Foreign,
    #[error("it speaks version {found} of the protocol, and this is version {VERSION}")]
    Version { found: u16 },
    #[error("its greeting is damaged")]
    Damaged,
    #[error("it is of the cluster `{found}`, and this is `{expected}`")]
    Cluster { found: String, expected: ClusterId },
    #[error("its certificate is not that of a {role}")]
    Uncertified { role: Role },
    #[error("it is a {found}, and not a {expected}")]
    Role { found: Role, expected: Role },
    #[error("rows travel between workers only")]
    NoWorker,
    #[error("the handshake has no end")]
    Endless,
    #[error("this process is about to connect itself")]
    Duplicate,
}

/// Introduces this process to the one that it has connected to.
pub(crate) async fn greet(
    connection: Connection,
    own: &Introduction,
    expected: Role,
    purpose: Purpose,
) -> Result<Greeted, HandshakeError> {
    let (mut send, mut receive) = connection.open_bi().await.map_err(lost)?;
    let hello = Hello::new(own, purpose);
    write(&mut send, &hello).await?;
    let check = async {
        let peer = read::<Hello>(&mut receive).await?.check(&connection, own)?;
        if peer.role != expected {
            return Err(HandshakeError::Role { found: peer.role, expected });
        }
        Ok(peer)
    };
    let peer = check.await.inspect_err(|error| refuse(&connection, error))?;
    Ok(Greeted { peer, purpose, connection, send, receive })
}

/// Answers whoever has connected, unless a connection to it is under way. An error is for the caller to tell.
pub(crate) async fn answer(
    connection: Connection,
    own: &Introduction,
    connections: &Connections,
) -> Result<Greeted, HandshakeError> {
    let (mut send, mut receive) = connection.accept_bi().await.map_err(lost)?;
    let check = async {
        let hello = read::<Hello>(&mut receive).await?;
        let peer = hello.check(&connection, own)?;
        if hello.purpose == Purpose::Data && [peer.role, own.role] != [Role::Worker; 2] {
            return Err(HandshakeError::NoWorker);
        }
        if hello.purpose == Purpose::Data && connections.is_duplicate(peer.node) {
            return Err(HandshakeError::Duplicate);
        }
        Ok((peer, hello.purpose))
    };
    match check.await {
        Ok((peer, purpose)) => {
            write(&mut send, &Hello::new(own, purpose)).await?;
            Ok(Greeted { peer, purpose, connection, send, receive })
        }
        Err(error) => {
            deny(&mut send, &error).await;
            Err(error)
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Hello {
    cluster: String,
    role: Role,
    node: NodeId,
    purpose: Purpose,
}

impl Hello {
    fn new(own: &Introduction, purpose: Purpose) -> Self {
        Self { cluster: own.cluster.to_string(), role: own.role, node: own.node, purpose }
    }

    fn check(&self, connection: &Connection, own: &Introduction) -> Result<Peer, HandshakeError> {
        if self.cluster != own.cluster.as_str() {
            let (found, expected) = (self.cluster.clone(), own.cluster.clone());
            return Err(HandshakeError::Cluster { found, expected });
        }
        let certified = certificate(connection)
            .is_some_and(|certificate| names_role(&certificate, self.role, &own.cluster));
        if !certified {
            return Err(HandshakeError::Uncertified { role: self.role });
        }
        Ok(Peer { role: self.role, node: self.node, address: address(connection) })
    }
}

/// An IPv4 address also where the socket is one of IPv6.
fn address(connection: &Connection) -> SocketAddr {
    let address = connection.remote_address();
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn certificate(connection: &Connection) -> Option<CertificateDer<'static>> {
    let shown = connection.peer_identity()?.downcast::<Vec<CertificateDer<'static>>>().ok()?;
    shown.into_iter().next()
}

/// Closes the connection and says why. What the other knows already is not said again.
pub(crate) fn refuse(connection: &Connection, error: &HandshakeError) {
    match error {
        HandshakeError::Lost(_) => {}
        HandshakeError::Duplicate => Closing::Duplicate(error.to_string()).close(connection),
        other => Closing::Refused(other.to_string()).close(connection),
    }
}

/// Says why on the stream, as what a connection is closed with may not arrive.
async fn deny(stream: &mut SendStream, error: &HandshakeError) {
    let code = match error {
        HandshakeError::Lost(_) => return,
        HandshakeError::Duplicate => DUPLICATE,
        _ => REFUSED,
    };
    let text = error.to_string();
    let text = &text.as_bytes()[..text.len().min(LONGEST - 1)];
    let length = (text.len() + 1) as u16;
    let numbers = [VERSION.to_le_bytes(), length.to_le_bytes()].concat();
    let denial = [&DENIAL[..], &numbers, &[code], text].concat();
    if stream.write_all(&denial).await.is_ok() && stream.finish().is_ok() {
        // Whoever does not acknowledge it hears it from the end of the connection.
        let _ = tokio::time::timeout(ACKNOWLEDGED, stream.stopped()).await;
    }
}

async fn write<T: Serialize>(stream: &mut SendStream, message: &T) -> Result<(), HandshakeError> {
    let body = postcard::to_stdvec(message).map_err(|_| HandshakeError::Damaged)?;
    let length = u16::try_from(body.len()).map_err(|_| HandshakeError::Damaged)?;
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(length.to_le_bytes());
    bytes.extend(body);
    stream.write_all(&bytes).await.map_err(|error| HandshakeError::Lost(error.into()))
}

async fn read<T: DeserializeOwned>(stream: &mut RecvStream) -> Result<T, HandshakeError> {
    let mut prologue = [0; PROLOGUE];
    read_exactly(stream, &mut prologue).await?;
    let (magic, rest) = prologue.split_at(MAGIC.len());
    if magic != MAGIC && magic != DENIAL {
        return Err(HandshakeError::Foreign);
    }
    let version = u16::from_le_bytes([rest[0], rest[1]]);
    // What a denial looks like is the same in every version.
    if version != VERSION && magic == MAGIC {
        return Err(HandshakeError::Version { found: version });
    }
    let length = usize::from(u16::from_le_bytes([rest[2], rest[3]]));
    if length > LONGEST {
        return Err(HandshakeError::Damaged);
    }
    let mut body = vec![0; length];
    read_exactly(stream, &mut body).await?;
    if magic == DENIAL {
        return Err(denied(&body));
    }
    postcard::from_bytes(&body).map_err(|_| HandshakeError::Damaged)
}

fn denied(body: &[u8]) -> HandshakeError {
    let Some((&code, text)) = body.split_first() else { return HandshakeError::Damaged };
    let reason = String::from_utf8_lossy(text).into_owned();
    HandshakeError::Lost(if code == DUPLICATE {
        Closing::Duplicate(reason)
    } else {
        Closing::Refused(reason)
    })
}

async fn read_exactly(stream: &mut RecvStream, buffer: &mut [u8]) -> Result<(), HandshakeError> {
    match stream.read_exact(buffer).await {
        Ok(()) => Ok(()),
        Err(quinn::ReadExactError::FinishedEarly(_)) => Err(HandshakeError::Foreign),
        Err(quinn::ReadExactError::ReadError(error)) => Err(HandshakeError::Lost(error.into())),
    }
}

fn lost(error: quinn::ConnectionError) -> HandshakeError {
    HandshakeError::Lost(describe(&error))
}

/// What every message begins with.
pub(crate) const MAGIC: &[u8; 8] = b"MILLSTRM";
/// The version of all that is sent over connections.
pub(crate) const VERSION: u16 = 1;
/// What every denial begins with. It goes on with the version, the length of what follows, a code and the reason.
const DENIAL: &[u8; 8] = b"MILLDENY";
const REFUSED: u8 = 1;
const DUPLICATE: u8 = 3;
/// How long it may take until a denial is known to have arrived.
const ACKNOWLEDGED: Duration = Duration::from_secs(1);
const PROLOGUE: usize = MAGIC.len() + 4;
/// What says who somebody is takes no more than that.
const LONGEST: usize = 256;
