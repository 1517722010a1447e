//! `millstream coordinator`: the head of a cluster.

use std::{path::Path, time::Duration};

use millstream_coordinator::{Coordinator, CoordinatorOptions};
use millstream_net::{ClusterId, Endpoint, EndpointOptions, Role};
use millstream_storage::{ClusterStore, RunLock, Storage};

use super::serving::{Signals, bound, serve_on};
use crate::{
    args,
    certificates::CertificateFolder,
    cluster::{certificates, failed},
    exit::{Exit, Failure},
    load::engine,
    printer::Printer,
};

pub(super) fn run(args: &args::Coordinator, printer: &Printer) -> Result<Exit, Failure> {
    let folder = CertificateFolder::of(args.certs.certs.as_deref()).map_err(certificates)?;
    if !folder.is_there() && args.bind.ip().is_loopback() {
        let cluster = ClusterId::random();
        folder.init(cluster.clone()).map_err(certificates)?;
        printer.note(&format!("made certificates for the cluster {cluster} in {}", folder.path().display()));
    }
    let identity = folder.identity(Role::Coordinator).map_err(certificates)?;
    let store = ClusterStore::new(Storage::open(&args.dir, Path::new("")).map_err(failed)?);
    let engine = engine()?;
    serve_on(async {
        let mut signals = Signals::listen()?;
        let lead = tokio::select! {
            lead = lead(&store, printer) => lead?,
            () = signals.next() => return Ok(Exit::Success),
        };
        let mut lead = lead;
        // Only who leads listens: whoever looks for the coordinator finds nobody else.
        let endpoint = Endpoint::bind(args.bind, identity, EndpointOptions::default()).map_err(bound)?;
        let options = CoordinatorOptions { heartbeat_timeout: Duration::from_millis(args.heartbeat_timeout) };
        let coordinator =
            Coordinator::start(endpoint.clone(), engine, store, options).await.map_err(failed)?;
        printer.note(&format!("coordinator listening on {}", endpoint.address()));
        let exit = tokio::select! {
            () = coordinator.run() => Ok(Exit::Success),
            () = signals.next() => Ok(Exit::Success),
            why = lead.lost() => {
                Err(Failure::environment(miette::miette!("another coordinator leads: {why}")))
            }
        };
        endpoint.close("the coordinator has been stopped").await;
        lead.release().await;
        exit
    })
}

/// Waits until nobody else leads.
async fn lead(store: &ClusterStore, printer: &Printer) -> Result<RunLock, Failure> {
    let mut said = false;
    loop {
        if let Some(lead) = store.lead().await.map_err(failed)? {
            return Ok(lead);
        }
        if !std::mem::replace(&mut said, true) {
            printer.note(&format!("standing by: another coordinator leads the cluster in {}", store.name()));
        }
        tokio::time::sleep(STANDBY).await;
    }
}

/// How often a standby looks whether nobody leads any more.
const STANDBY: Duration = Duration::from_millis(250);
