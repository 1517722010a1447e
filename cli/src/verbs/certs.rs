//! `millstream certs`: who the parts of a cluster are to each other.

use millstream_net::ClusterId;
use serde_json::json;

use crate::{
    args,
    certificates::CertificateFolder,
    cluster::certificates,
    exit::{Exit, Failure},
    printer::Printer,
};

/// Makes a new cluster.
pub(super) fn init(args: &args::CertsInit, printer: &Printer) -> Result<Exit, Failure> {
    let folder = CertificateFolder::of(args.certs.certs.as_deref()).map_err(certificates)?;
    let cluster = args.cluster.clone().unwrap_or_else(ClusterId::random);
    folder.init(cluster.clone()).map_err(certificates)?;
    let path = folder.path().display().to_string();
    printer.result(&json!({ "cluster": cluster.to_string(), "path": path }), || {
        format!(
            "cluster {cluster}: certificates of all roles are in {path}; `ca.key` makes others, so it stays there: \
             `millstream certs issue` makes folders for other machines"
        )
    });
    Ok(Exit::Success)
}

/// Makes a folder for another machine.
pub(super) fn issue(args: &args::CertsIssue, printer: &Printer) -> Result<Exit, Failure> {
    let folder = CertificateFolder::of(args.certs.certs.as_deref()).map_err(certificates)?;
    folder.issue(args.role, &args.to).map_err(certificates)?;
    let (role, path) = (args.role.to_string(), args.to.display().to_string());
    printer.result(&json!({ "role": role, "path": path }), || {
        format!("a {role}'s certificate is in {path}: bring the folder to its machine and name it there with `--certs`")
    });
    Ok(Exit::Success)
}
