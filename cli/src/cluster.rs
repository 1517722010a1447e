//! Speaking to the coordinator of a cluster.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

use millstream_control::{Opening, Reply, Request};
use millstream_net::{ConnectError, Endpoint, EndpointOptions, Role};
use millstream_worker::{connect_coordinator, in_full};

use crate::{
    args,
    certificates::{CertificateError, CertificateFolder},
    exit::Failure,
};

/// Asks a coordinator for something, and waits for the answer.
pub(crate) async fn ask(cluster: &args::Cluster, request: Request) -> Result<Reply, Failure> {
    let folder = CertificateFolder::of(cluster.certs.certs.as_deref()).map_err(certificates)?;
    let identity = folder.identity(Role::Client).map_err(certificates)?;
    let addresses = addresses(&cluster.coordinator)?;
    let options = EndpointOptions { threads: 1, ..EndpointOptions::default() };
    let endpoint = Endpoint::bind(local(&addresses), identity, options).map_err(failed)?;
    let connected = connect_coordinator(&endpoint, &addresses).await;
    let (mut stream, _) = connected.map_err(no_coordinator)?;
    stream.send(&Opening::Client(request)).await.map_err(failed)?;
    stream.receive().await.map_err(failed)
}

/// Where coordinators are, names looked up.
pub(crate) fn addresses(named: &[String]) -> Result<Vec<SocketAddr>, Failure> {
    let mut all = Vec::new();
    for name in named {
        let found = name.to_socket_addrs().map_err(|e| {
            Failure::environment(miette::miette!(
                "`{name}` is no address of a coordinator: {e}; expected HOST:PORT"
            ))
        })?;
        all.extend(found);
    }
    Ok(all)
}

/// Where whoever connects to these listens itself.
pub(crate) fn local(addresses: &[SocketAddr]) -> SocketAddr {
    match addresses.first() {
        Some(first) if !first.ip().is_loopback() && first.is_ipv4() => (Ipv4Addr::UNSPECIFIED, 0).into(),
        Some(first) if !first.ip().is_loopback() => (Ipv6Addr::UNSPECIFIED, 0).into(),
        Some(first) if first.is_ipv6() => (Ipv6Addr::LOCALHOST, 0).into(),
        _ => (Ipv4Addr::LOCALHOST, 0).into(),
    }
}

/// Something around the command is in the way.
pub(crate) fn failed(error: impl std::error::Error + Send + Sync + 'static) -> Failure {
    Failure::environment(miette::Report::from_err(error))
}

/// Certificates are in the way.
pub(crate) fn certificates(error: CertificateError) -> Failure {
    let help = match &error {
        CertificateError::Missing(_) => Some(
            "start the coordinator first, which makes them for a cluster on this machine; elsewhere `millstream certs init` makes and `certs issue` hands them out",
        ),
        CertificateError::There(_) => Some("name another folder, or go on with those that are there"),
        _ => None,
    };
    match help {
        Some(help) => Failure::environment(miette::miette!(help = help, "{}", in_full(&error))),
        None => failed(error),
    }
}

fn no_coordinator(error: ConnectError) -> Failure {
    let help =
        "is it running? `millstream coordinator` starts one, `--coordinator HOST:PORT` says where it is";
    Failure::environment(miette::miette!(help = help, "{}", in_full(&error)))
}
