//! Who a process is, in certificates: a cluster has an authority of its own, and what that signs names the cluster and the
//! role. Both ends of every connection show theirs.
//!
//! Clusters do not know each other's authorities. A process of another cluster, one without a certificate and one with an
//! expired one get no further than TLS; one that claims another role than its certificate names is refused in the handshake.

mod authority;
mod tls;

pub use authority::{CertificateAuthority, IssuedCertificate};

use quinn::{ClientConfig, ServerConfig};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};

#[cfg(test)]
pub(crate) use tests::trusting_config;
pub(crate) use tls::names_role;

use crate::{ClusterId, Role};

/// The certificates and the key of a process.
pub struct Identity {
    cluster: ClusterId,
    role: Role,
    authority: CertificateDer<'static>,
    certificates: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

/// Certificates that are no use.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A text is not what it should be.
    #[error("the {what} cannot be read: {problem}")]
    Unreadable {
        /// Which one.
        what: &'static str,
        /// What was found, what was expected.
        problem: String,
    },
    /// A certificate is none of ours.
    #[error("the {what} names {found}, and should name `{expected}`: it was not made by millstream")]
    Foreign {
        /// Which one.
        what: &'static str,
        /// The names in it.
        found: String,
        /// The form of the name that was expected.
        expected: &'static str,
    },
    /// Certificate and authority are of different clusters.
    #[error("the certificate is of the cluster `{certificate}`, and the authority of `{authority}`")]
    AnotherCluster {
        /// The cluster that the certificate names.
        certificate: ClusterId,
        /// The cluster that the authority is of.
        authority: ClusterId,
    },
    /// Key and certificate do not belong together, or not in a way that TLS could use.
    #[error("certificate and key cannot be used: {problem}")]
    Unusable {
        /// What TLS says.
        problem: String,
    },
    /// A certificate could not be made.
    #[error("a certificate cannot be made: {problem}")]
    Issue {
        /// What is wrong.
        problem: String,
    },
}

impl Identity {
    /// The identity that a certificate of a cluster's authority gives whoever has its key. All three are PEM. What the
    /// process is, is read from the certificate; whether that is still good, others look at when they are connected to.
    pub fn from_pem(authority: &str, certificate: &str, key: &str) -> Result<Self, IdentityError> {
        let authority = authority::read_certificate(authority, "certificate of the authority")?;
        let cluster = authority::cluster_of_authority(&authority)?;
        let certificates =
            CertificateDer::pem_slice_iter(certificate.as_bytes()).collect::<Result<Vec<_>, _>>();
        let certificates = certificates.map_err(|error| unreadable(CERTIFICATE, &error))?;
        let Some(own) = certificates.first() else {
            return Err(unreadable(CERTIFICATE, &"there is none in it"));
        };
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|error| unreadable("key", &error))?;
        let names = tls::names_in(own, CERTIFICATE)?;
        let Some((role, of)) = names.iter().find_map(|name| Role::from_dns_name(name)) else {
            let (found, expected) = (listed(&names), "ROLE.CLUSTER.millstream");
            return Err(IdentityError::Foreign { what: CERTIFICATE, found, expected });
        };
        if of != cluster {
            return Err(IdentityError::AnotherCluster { certificate: of, authority: cluster });
        }
        let identity = Self { cluster, role, authority, certificates, key };
        // Both are made anew for an endpoint; that they can be is known from here on.
        identity.client_config()?;
        identity.server_config()?;
        Ok(identity)
    }

    /// The identity of a cluster's only process.
    pub fn ephemeral(role: Role) -> Result<Self, IdentityError> {
        CertificateAuthority::new(ClusterId::random())?.identity(role)
    }

    /// The cluster.
    pub fn cluster(&self) -> &ClusterId {
        &self.cluster
    }

    /// What the process is in it.
    pub fn role(&self) -> Role {
        self.role
    }

    pub(crate) fn client_config(&self) -> Result<ClientConfig, IdentityError> {
        tls::client_config(&self.authority, self.certificates.clone(), self.key.clone_key())
    }

    pub(crate) fn server_config(&self) -> Result<ServerConfig, IdentityError> {
        tls::server_config(&self.authority, self.certificates.clone(), self.key.clone_key())
    }
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Identity({} of {})", self.role, self.cluster)
    }
}

fn unreadable(what: &'static str, problem: &dyn std::fmt::Display) -> IdentityError {
    IdentityError::Unreadable { what, problem: problem.to_string() }
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "nobody".to_owned() } else { format!("`{}`", names.join("`, `")) }
}

const CERTIFICATE: &str = "certificate";

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use expect_test::expect;

    use super::*;

    /// For a peer that trusts everybody and shows its certificate or not.
    pub(crate) fn trusting_config(
        identity: &Identity,
        authenticated: bool,
    ) -> Result<ClientConfig, IdentityError> {
        tls::trusting_config(authenticated.then(|| (identity.certificates.clone(), identity.key.clone_key())))
    }

    const DAY: Duration = Duration::from_secs(86_400);

    fn authority(cluster: &str) -> CertificateAuthority {
        CertificateAuthority::new(cluster.parse().expect("valid")).expect("made")
    }

    #[test]
    fn what_is_issued_is_read_back() {
        let made = authority("prod");
        let read = CertificateAuthority::from_pem(made.certificate_pem(), &made.key_pem()).expect("its own");
        for role in Role::ALL {
            let issued = read.issue(role, DAY).expect("issued");
            let identity =
                Identity::from_pem(made.certificate_pem(), &issued.certificate_pem, &issued.key_pem)
                    .expect("good");
            assert_eq!((identity.role(), identity.cluster().as_str()), (role, "prod"));
        }
    }

    #[test]
    fn what_does_not_belong_together_is_refused() {
        let (ours, theirs) = (authority("ours"), authority("theirs"));
        let (mine, other) =
            (ours.issue(Role::Worker, DAY).expect("issued"), ours.issue(Role::Worker, DAY).expect("issued"));
        let check = |authority: &CertificateAuthority, certificate: &str, key: &str| {
            Identity::from_pem(authority.certificate_pem(), certificate, key)
                .expect_err("refused")
                .to_string()
        };
        expect!["the certificate is of the cluster `ours`, and the authority of `theirs`"].assert_eq(&check(
            &theirs,
            &mine.certificate_pem,
            &mine.key_pem,
        ));
        expect!["certificate and key cannot be used: keys may not be consistent: KeyMismatch"]
            .assert_eq(&check(&ours, &mine.certificate_pem, &other.key_pem));
        expect!["the certificate cannot be read: there is none in it"].assert_eq(&check(
            &ours,
            "nothing",
            &mine.key_pem,
        ));
        expect!["the key cannot be read: no items found"].assert_eq(&check(
            &ours,
            &mine.certificate_pem,
            "nothing",
        ));
        expect!["the certificate names `authority.ours.millstream`, and should name `ROLE.CLUSTER.millstream`: it was not made by millstream"].assert_eq(&check(&ours, ours.certificate_pem(), &ours.key_pem()));
        let error = CertificateAuthority::from_pem(ours.certificate_pem(), &theirs.key_pem()).map(|_| ());
        expect![
            "certificate and key cannot be used: the key is not that of the certificate of the authority"
        ]
        .assert_eq(&error.expect_err("refused").to_string());
        let error = CertificateAuthority::from_pem(&mine.certificate_pem, &mine.key_pem).map(|_| ());
        expect!["the certificate of the authority names `worker.ours.millstream`, and should name `authority.CLUSTER.millstream`: it was not made by millstream"].assert_eq(&error.expect_err("refused").to_string());
    }
}
