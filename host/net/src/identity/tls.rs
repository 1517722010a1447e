//! TLS as both ends of a connection use it: version 1.3, certificates on both sides, one authority.

#[cfg(test)]
mod trusting;

use std::sync::Arc;

use quinn::{
    ClientConfig, ServerConfig,
    crypto::rustls::{QuicClientConfig, QuicServerConfig},
};
use rustls::{
    RootCertStore,
    crypto::ring::default_provider,
    pki_types::{CertificateDer, PrivateKeyDer},
    server::WebPkiClientVerifier,
};
use webpki::EndEntityCert;

use super::IdentityError;
use crate::{ClusterId, Role};

pub(super) fn client_config(
    authority: &CertificateDer<'static>,
    certificates: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ClientConfig, IdentityError> {
    let mut config = rustls::ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(unusable)?
        .with_root_certificates(roots(authority)?)
        .with_client_auth_cert(certificates, key)
        .map_err(unusable)?;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    // Each connection shows its certificate anew.
    config.resumption = rustls::client::Resumption::disabled();
    Ok(ClientConfig::new(Arc::new(QuicClientConfig::try_from(config).map_err(unusable)?)))
}

pub(super) fn server_config(
    authority: &CertificateDer<'static>,
    certificates: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ServerConfig, IdentityError> {
    let provider = Arc::new(default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots(authority)?), provider.clone())
        .build()
        .map_err(unusable)?;
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(unusable)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(certificates, key)
        .map_err(unusable)?;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    config.send_tls13_tickets = 0;
    Ok(ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(config).map_err(unusable)?)))
}

/// Whether a certificate that TLS has accepted names this role in this cluster.
pub(crate) fn names_role(certificate: &CertificateDer<'_>, role: Role, cluster: &ClusterId) -> bool {
    let expected = role.dns_name(cluster);
    EndEntityCert::try_from(certificate)
        .is_ok_and(|certificate| certificate.valid_dns_names().any(|name| name == expected))
}

pub(super) fn names_in(
    certificate: &CertificateDer<'_>,
    what: &'static str,
) -> Result<Vec<String>, IdentityError> {
    let certificate =
        EndEntityCert::try_from(certificate).map_err(|error| super::unreadable(what, &error))?;
    Ok(certificate.valid_dns_names().map(str::to_owned).collect())
}

fn roots(authority: &CertificateDer<'static>) -> Result<RootCertStore, IdentityError> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.clone()).map_err(unusable)?;
    Ok(roots)
}

fn unusable(error: impl std::fmt::Display) -> IdentityError {
    IdentityError::Unusable { problem: error.to_string() }
}

/// For a peer in tests that trusts everybody.
#[cfg(test)]
pub(super) fn trusting_config(
    shown: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
) -> Result<ClientConfig, IdentityError> {
    let builder = rustls::ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(unusable)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(trusting::Trusting));
    let mut config = match shown {
        Some((certificates, key)) => builder.with_client_auth_cert(certificates, key).map_err(unusable)?,
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(ClientConfig::new(Arc::new(QuicClientConfig::try_from(config).map_err(unusable)?)))
}

/// What both ends say that they speak. Versions are told apart in the handshake, where they can be named.
const PROTOCOL: &[u8] = b"millstream";
