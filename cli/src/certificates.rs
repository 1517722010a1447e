//! The certificates of a cluster in a folder: the authority, and one of each role.
//!
//! A cluster on one machine needs nobody to make them: the coordinator does so when it starts for the first time, in a folder
//! that only its user can enter, and workers and clients of that user find them there.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use millstream_net::{CertificateAuthority, ClusterId, Identity, IdentityError, Role};

/// Certificates that cannot be read or made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CertificateError {
    #[error("there are no certificates in {}", .0.display())]
    Missing(PathBuf),
    #[error("{}: cannot be {action}", path.display())]
    File { path: PathBuf, action: &'static str, source: io::Error },
    #[error("{}", dir.display())]
    Identity { dir: PathBuf, source: IdentityError },
    #[error("{} has certificates already", .0.display())]
    There(PathBuf),
    #[error("there is no home folder for certificates")]
    NoHome,
}

/// A folder of certificates.
#[derive(Clone, Debug)]
pub(crate) struct CertificateFolder(PathBuf);

impl CertificateFolder {
    /// The folder that the user names, or the user's own.
    pub(crate) fn of(named: Option<&Path>) -> Result<Self, CertificateError> {
        if let Some(named) = named {
            return Ok(Self(named.to_owned()));
        }
        let set = |name: &str| env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let config = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")));
        Ok(Self(config.ok_or(CertificateError::NoHome)?.join("millstream").join("certs")))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Whether there is an authority's certificate in it.
    pub(crate) fn is_there(&self) -> bool {
        self.0.join(AUTHORITY).exists()
    }

    /// Makes the authority of a new cluster and a certificate of each role.
    pub(crate) fn init(&self, cluster: ClusterId) -> Result<(), CertificateError> {
        if self.is_there() {
            return Err(CertificateError::There(self.0.clone()));
        }
        let failed = |source| CertificateError::Identity { dir: self.0.clone(), source };
        let authority = CertificateAuthority::new(cluster).map_err(failed)?;
        self.make()?;
        self.write(AUTHORITY_KEY, &authority.key_pem())?;
        for role in [Role::Coordinator, Role::Worker, Role::Client] {
            self.issue_into(&authority, role)?;
        }
        // Last: with it the folder is whole.
        self.write(AUTHORITY, authority.certificate_pem())
    }

    /// Makes another folder with a certificate of a role, and nothing with which others could be made.
    pub(crate) fn issue(&self, role: Role, to: &Path) -> Result<(), CertificateError> {
        let authority = CertificateAuthority::from_pem(&self.read(AUTHORITY)?, &self.read(AUTHORITY_KEY)?);
        let authority =
            authority.map_err(|source| CertificateError::Identity { dir: self.0.clone(), source })?;
        let other = Self(to.to_owned());
        if other.is_there() {
            return Err(CertificateError::There(other.0));
        }
        other.make()?;
        other.issue_into(&authority, role)?;
        other.write(AUTHORITY, authority.certificate_pem())
    }

    /// Who a process with a role is.
    pub(crate) fn identity(&self, role: Role) -> Result<Identity, CertificateError> {
        let (certificate, key) = files(role);
        let identity =
            Identity::from_pem(&self.read(AUTHORITY)?, &self.read(&certificate)?, &self.read(&key)?);
        identity.map_err(|source| CertificateError::Identity { dir: self.0.clone(), source })
    }

    fn issue_into(&self, authority: &CertificateAuthority, role: Role) -> Result<(), CertificateError> {
        let issued = authority.issue(role, VALIDITY);
        let issued = issued.map_err(|source| CertificateError::Identity { dir: self.0.clone(), source })?;
        let (certificate, key) = files(role);
        self.write(&key, &issued.key_pem)?;
        self.write(&certificate, &issued.certificate_pem)
    }

    fn make(&self) -> Result<(), CertificateError> {
        use std::os::unix::fs::DirBuilderExt;
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0);
        made.map_err(|source| CertificateError::File { path: self.0.clone(), action: "made", source })
    }

    fn read(&self, name: &str) -> Result<String, CertificateError> {
        let path = self.0.join(name);
        match fs::read_to_string(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound && !self.is_there() => {
                Err(CertificateError::Missing(self.0.clone()))
            }
            read => read.map_err(|source| CertificateError::File { path, action: "read", source }),
        }
    }

    fn write(&self, name: &str, text: &str) -> Result<(), CertificateError> {
        use std::{io::Write, os::unix::fs::OpenOptionsExt};
        let path = self.0.join(name);
        let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|source| CertificateError::File { path, action: "written", source })
    }
}

/// The names of certificate and key of a role.
fn files(role: Role) -> (String, String) {
    (format!("{role}.pem"), format!("{role}.key"))
}

const AUTHORITY: &str = "ca.pem";
const AUTHORITY_KEY: &str = "ca.key";
/// How long certificates are good for: a year.
const VALIDITY: Duration = Duration::from_secs(365 * 24 * 3600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_issued_can_be_used_and_issues_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let main = CertificateFolder(folder.path().join("main"));
        assert!(matches!(main.identity(Role::Worker), Err(CertificateError::Missing(_))));
        main.init("ours".parse().expect("a name")).expect("made");
        assert!(matches!(main.init(ClusterId::random()), Err(CertificateError::There(_))));
        let to = folder.path().join("worker");
        main.issue(Role::Worker, &to).expect("issued");
        let issued = CertificateFolder(to);
        assert_eq!(issued.identity(Role::Worker).expect("its own").cluster().as_str(), "ours");
        assert!(issued.identity(Role::Client).is_err());
        assert!(issued.issue(Role::Worker, &folder.path().join("more")).is_err());
    }
}
