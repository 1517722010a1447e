//! The authority of a cluster: what signs the certificates of its processes.

use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PublicKeyData,
};
use rustls::pki_types::{CertificateDer, pem::PemObject};

use super::{IdentityError, listed, tls, unreadable};
use crate::{ClusterId, Identity, Role};

/// A cluster's authority, with the key that only whoever issues certificates should have.
pub struct CertificateAuthority {
    cluster: ClusterId,
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate for a process with its key, both PEM.
#[derive(Clone)]
pub struct IssuedCertificate {
    /// What the process shows.
    pub certificate_pem: String,
    /// What proves that it is its own.
    pub key_pem: String,
}

impl CertificateAuthority {
    /// Makes the authority of a new cluster. It is good for ten years.
    pub fn new(cluster: ClusterId) -> Result<Self, IdentityError> {
        let key = KeyPair::generate().map_err(cannot_issue)?;
        let params = params_of_authority(&cluster)?;
        let certificate = params.self_signed(&key).map_err(cannot_issue)?.pem();
        Ok(Self { cluster, certificate, issuer: Issuer::new(params, key) })
    }

    /// An authority that was made before.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Self, IdentityError> {
        let read = read_certificate(certificate, AUTHORITY)?;
        let cluster = cluster_of_authority(&read)?;
        let key = KeyPair::from_pem(key).map_err(|error| unreadable("key of the authority", &error))?;
        if !contains(&read, key.der_bytes()) {
            let problem = "the key is not that of the certificate of the authority".to_owned();
            return Err(IdentityError::Unusable { problem });
        }
        let params = params_of_authority(&cluster)?;
        Ok(Self { cluster, certificate: certificate.to_owned(), issuer: Issuer::new(params, key) })
    }

    /// The cluster.
    pub fn cluster(&self) -> &ClusterId {
        &self.cluster
    }

    /// What every process of the cluster needs to know the others.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate
    }

    /// What nobody needs but whoever issues certificates.
    pub fn key_pem(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// Issues a certificate for a process with this role, good for so long from now on.
    pub fn issue(&self, role: Role, validity: Duration) -> Result<IssuedCertificate, IdentityError> {
        let now = SystemTime::now();
        self.issue_within(role, now - LEEWAY, now + validity)
    }

    /// An identity with a certificate of its own.
    pub fn identity(&self, role: Role) -> Result<Identity, IdentityError> {
        let issued = self.issue(role, LIFETIME)?;
        Identity::from_pem(&self.certificate, &issued.certificate_pem, &issued.key_pem)
    }

    pub(crate) fn issue_within(
        &self,
        role: Role,
        from: SystemTime,
        to: SystemTime,
    ) -> Result<IssuedCertificate, IdentityError> {
        let key = KeyPair::generate().map_err(cannot_issue)?;
        let mut params = CertificateParams::new(vec![role.dns_name(&self.cluster)]).map_err(cannot_issue)?;
        params.distinguished_name = named(&format!("millstream {role} of {}", self.cluster));
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        (params.not_before, params.not_after) = (from.into(), to.into());
        let certificate = params.signed_by(&key, &self.issuer).map_err(cannot_issue)?;
        Ok(IssuedCertificate { certificate_pem: certificate.pem(), key_pem: key.serialize_pem() })
    }
}

/// The certificate of an authority says which cluster it is of, so all but the key follows from that.
fn params_of_authority(cluster: &ClusterId) -> Result<CertificateParams, IdentityError> {
    let mut params = CertificateParams::new(vec![name_of_authority(cluster)]).map_err(cannot_issue)?;
    params.distinguished_name = named(&format!("millstream authority of {cluster}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let now = SystemTime::now();
    (params.not_before, params.not_after) = ((now - LEEWAY).into(), (now + LIFETIME).into());
    Ok(params)
}

fn named(name: &str) -> DistinguishedName {
    let mut names = DistinguishedName::new();
    names.push(DnType::CommonName, name);
    names
}

fn name_of_authority(cluster: &ClusterId) -> String {
    format!("{PREFIX}{cluster}{SUFFIX}")
}

/// The cluster that a certificate is the authority of.
pub(super) fn cluster_of_authority(certificate: &CertificateDer<'_>) -> Result<ClusterId, IdentityError> {
    let names = tls::names_in(certificate, AUTHORITY)?;
    let cluster = |name: &String| name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.parse().ok();
    names.iter().find_map(cluster).ok_or_else(|| IdentityError::Foreign {
        what: AUTHORITY,
        found: listed(&names),
        expected: "authority.CLUSTER.millstream",
    })
}

pub(super) fn read_certificate(
    pem: &str,
    what: &'static str,
) -> Result<CertificateDer<'static>, IdentityError> {
    CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|error| unreadable(what, &error))
}

/// A public key stands in its certificate as it is.
fn contains(certificate: &[u8], key: &[u8]) -> bool {
    !key.is_empty() && certificate.windows(key.len()).any(|window| window == key)
}

fn cannot_issue(error: rcgen::Error) -> IdentityError {
    IdentityError::Issue { problem: error.to_string() }
}

const AUTHORITY: &str = "certificate of the authority";
const PREFIX: &str = "authority.";
const SUFFIX: &str = ".millstream";
/// How far the clocks of two machines may be apart.
const LEEWAY: Duration = Duration::from_secs(3600);
/// Ten years.
const LIFETIME: Duration = Duration::from_secs(10 * 365 * 86_400);
