//! How a connection ends, in words for people.

use std::fmt;

use quinn::{Connection, ConnectionError, ReadError, TransportErrorCode, VarInt, WriteError};

/// Why a connection, or the stream of a control connection, has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Closing {
    /// The other end, or this one, was through with it.
    Done(String),
    /// The other end is through with the stream.
    GivenUp(String),
    /// The other end does not want to speak to this one.
    Refused(String),
    /// The other end is about to connect by itself.
    Duplicate(String),
    /// This end does not trust the other one.
    Untrusted(String),
    /// What came was not what may come.
    Violation(String),
    /// Nothing comes any more, and nobody said why.
    Lost(String),
}

impl Closing {
    /// Closes a connection and tells the other end why.
    pub(crate) fn close(&self, connection: &Connection) {
        let code = match self {
            Self::Done(_) | Self::GivenUp(_) => DONE,
            Self::Refused(_) | Self::Untrusted(_) => REFUSED,
            Self::Duplicate(_) => DUPLICATE,
            Self::Violation(_) | Self::Lost(_) => VIOLATION,
        };
        connection.close(VarInt::from_u32(code), self.reason().as_bytes());
    }

    pub(crate) fn reason(&self) -> &str {
        match self {
            Self::Done(reason)
            | Self::GivenUp(reason)
            | Self::Refused(reason)
            | Self::Duplicate(reason)
            | Self::Untrusted(reason)
            | Self::Violation(reason)
            | Self::Lost(reason) => reason,
        }
    }
}

impl fmt::Display for Closing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}

impl From<ReadError> for Closing {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::ConnectionLost(error) => describe(&error),
            ReadError::Reset(_) => Self::GivenUp("the other end has given the stream up".into()),
            other => Self::Lost(other.to_string()),
        }
    }
}

impl From<WriteError> for Closing {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::ConnectionLost(error) => describe(&error),
            WriteError::Stopped(_) => Self::GivenUp("the other end does not listen any more".into()),
            other => Self::Lost(other.to_string()),
        }
    }
}

/// What the end of a connection means.
pub(crate) fn describe(error: &ConnectionError) -> Closing {
    match error {
        ConnectionError::ApplicationClosed(close) => {
            let reason = String::from_utf8_lossy(&close.reason).into_owned();
            match close.error_code.into_inner() {
                code if code == u64::from(REFUSED) => Closing::Refused(reason),
                code if code == u64::from(VIOLATION) => Closing::Violation(reason),
                code if code == u64::from(DUPLICATE) => Closing::Duplicate(reason),
                _ if reason.is_empty() => Closing::Done("the other end has closed the connection".into()),
                _ => Closing::Done(reason),
            }
        }
        ConnectionError::ConnectionClosed(close) => match alert(close.error_code) {
            Some(alert) => Closing::Refused(certificate_problem(
                alert,
                "this process'",
                &String::from_utf8_lossy(&close.reason),
            )),
            None => Closing::Lost(close.to_string()),
        },
        ConnectionError::TransportError(error) => match alert(error.code) {
            Some(alert) => Closing::Untrusted(certificate_problem(alert, "its", &error.reason)),
            None => Closing::Lost(error.to_string()),
        },
        ConnectionError::LocallyClosed => Closing::Done("this end has closed the connection".into()),
        ConnectionError::TimedOut => Closing::Lost("it does not answer any more".into()),
        ConnectionError::Reset => {
            Closing::Lost("it has been started anew and knows nothing of the connection".into())
        }
        other => Closing::Lost(other.to_string()),
    }
}

/// The alert of TLS that a connection ended with, if it did.
fn alert(code: TransportErrorCode) -> Option<u8> {
    let code = u64::from(code);
    (0x100..0x200).contains(&code).then_some(code as u8)
}

/// What an alert of TLS (RFC 8446, section 6) means here. `whose` certificate it is about.
fn certificate_problem(alert: u8, whose: &str, reason: &str) -> String {
    match alert {
        42 => format!("{whose} certificate is not that of the role and cluster which were expected"),
        45 => format!("{whose} certificate has expired or is not valid yet"),
        48 => format!("{whose} certificate is not of this cluster: another authority has signed it"),
        51 => format!("{whose} certificate is not of this cluster: its authority has another key"),
        116 => "no certificate was shown".to_owned(),
        120 => "only one of the two speaks millstream's protocol".to_owned(),
        _ if reason.is_empty() => format!("TLS cannot be agreed on (alert {alert})"),
        _ => format!("TLS cannot be agreed on: {reason}"),
    }
}

/// Codes with which connections are closed. They are for ever.
const DONE: u32 = 0;
const REFUSED: u32 = 1;
const VIOLATION: u32 = 2;
const DUPLICATE: u32 = 3;
