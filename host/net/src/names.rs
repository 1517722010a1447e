//! Who is who in a cluster: its id, the roles in it, and the processes that play them.

use std::{fmt, net::SocketAddr, str::FromStr};

use rustls::crypto::ring::default_provider;
use serde::{Deserialize, Serialize};

/// What a process is in a cluster. Its certificate says so, and nobody may act as anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Role {
    /// Decides what runs where.
    Coordinator,
    /// Runs subtasks.
    Worker,
    /// Asks a coordinator for something.
    Client,
}

impl Role {
    /// All of them.
    pub const ALL: [Role; 3] = [Role::Coordinator, Role::Worker, Role::Client];

    /// The word for it in certificates and messages.
    pub fn name(self) -> &'static str {
        match self {
            Role::Coordinator => "coordinator",
            Role::Worker => "worker",
            Role::Client => "client",
        }
    }

    /// The name in the certificate of whoever has this role in a cluster.
    pub(crate) fn dns_name(self, cluster: &ClusterId) -> String {
        format!("{}.{cluster}{DOMAIN}", self.name())
    }

    /// The role and the cluster that a name in a certificate stands for.
    pub(crate) fn from_dns_name(name: &str) -> Option<(Role, ClusterId)> {
        let (role, cluster) = name.strip_suffix(DOMAIN)?.split_once('.')?;
        Some((role.parse().ok()?, cluster.parse().ok()?))
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A word that is no role.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is no role: expected coordinator, worker or client")]
pub struct UnknownRole {
    /// What stood there.
    pub found: String,
}

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(text: &str) -> Result<Self, UnknownRole> {
        let found = Role::ALL.into_iter().find(|role| role.name() == text);
        found.ok_or_else(|| UnknownRole { found: text.to_owned() })
    }
}

/// What tells one cluster from another: lower-case letters, digits and hyphens, at most 40, as in a host's name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClusterId(String);

impl ClusterId {
    /// An id that no other cluster has.
    pub fn random() -> Self {
        Self(format!("local-{:016x}", NodeId::random().0 as u64))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that is no id of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{found}` is no id of a cluster: expected 1 to 40 lower-case letters, digits and hyphens, with a letter or digit at both ends"
)]
pub struct InvalidClusterId {
    /// What stood there.
    pub found: String,
}

impl FromStr for ClusterId {
    type Err = InvalidClusterId;

    fn from_str(text: &str) -> Result<Self, InvalidClusterId> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let ends = [text.bytes().next(), text.bytes().last()];
        let good = text.len() <= LONGEST_CLUSTER_ID
            && text.bytes().all(|byte| plain(byte) || byte == b'-')
            && ends.into_iter().all(|end| end.is_some_and(plain));
        if good { Ok(Self(text.to_owned())) } else { Err(InvalidClusterId { found: text.to_owned() }) }
    }
}

/// What tells one process from another, also from one that had its address before: a number that it drew at its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeId(pub u128);

impl NodeId {
    /// A number that nobody else has drawn.
    ///
    /// # Panics
    /// If the system has no random numbers, without which there are no keys either.
    pub fn random() -> Self {
        let mut bytes = [0; 16];
        default_provider().secure_random.fill(&mut bytes).expect("the system hands out random numbers");
        Self(u128::from_le_bytes(bytes))
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The process at the other end of a connection, as its certificate and its handshake say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Peer {
    /// What it is.
    pub role: Role,
    /// Which one.
    pub node: NodeId,
    /// Where it sends from.
    pub address: SocketAddr,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:08x} at {}", self.role, self.node.0 >> 96, self.address)
    }
}

const DOMAIN: &str = ".millstream";
const LONGEST_CLUSTER_ID: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_certificates_are_read_as_they_are_written() {
        let cluster: ClusterId = "prod-1".parse().expect("valid");
        for role in Role::ALL {
            assert_eq!(Role::from_dns_name(&role.dns_name(&cluster)), Some((role, cluster.clone())));
        }
        for other in [
            "worker.prod-1",
            "millstream",
            "worker.millstream",
            "cook.prod-1.millstream",
            "worker.a.b.millstream",
        ] {
            assert_eq!(Role::from_dns_name(other), None, "{other}");
        }
    }

    #[test]
    fn ids_of_clusters_are_checked() {
        for bad in ["", "-a", "a-", "A", "a.b", "ä", &"a".repeat(41)] {
            assert!(bad.parse::<ClusterId>().is_err(), "{bad}");
        }
        let random = ClusterId::random();
        assert_eq!(random.as_str().parse(), Ok(random));
    }
}
