//! `millstream worker`: slots for a cluster.

use comfy_table::{Table, presets};
use millstream_control::{Reply, Request, WorkerInfo};
use millstream_net::{Endpoint, EndpointOptions, Role};
use millstream_worker::{Worker, WorkerOptions};

use super::{
    serving::{Signals, bound, serve_on},
    snapshots::block_on,
};
use crate::{
    args,
    certificates::CertificateFolder,
    cluster::{addresses, ask, certificates, failed},
    control::host,
    exit::{Exit, Failure},
    load::engine,
    printer::Printer,
};

pub(super) fn run(args: &args::Worker, printer: &Printer) -> Result<Exit, Failure> {
    let coordinators = addresses(&args.cluster.coordinator)?;
    if args.bind.ip().is_unspecified() && args.advertise.is_none() {
        return Err(Failure::invalid(miette::miette!(
            help = "`--advertise ADDRESS:PORT` says where other workers reach this one",
            "{} is every address of this machine, and others need one",
            args.bind
        )));
    }
    let folder = CertificateFolder::of(args.cluster.certs.certs.as_deref()).map_err(certificates)?;
    let identity = folder.identity(Role::Worker).map_err(certificates)?;
    let engine = engine()?;
    // One that nobody named goes with the process.
    let own = match &args.dir {
        Some(_) => None,
        None => Some(tempfile::Builder::new().prefix("millstream-worker-").tempdir().map_err(failed)?),
    };
    let dir = args.dir.clone().or_else(|| own.as_ref().map(|own| own.path().to_owned())).unwrap_or_default();
    serve_on(async {
        let mut signals = Signals::listen()?;
        let endpoint = Endpoint::bind(args.bind, identity, EndpointOptions::default()).map_err(bound)?;
        printer.note(&format!("worker listening on {} with {} slots", endpoint.address(), args.slots));
        let options =
            WorkerOptions { coordinators, slots: args.slots, dir, host: host(), advertise: args.advertise };
        let worker = Worker::new(endpoint.clone(), engine, options).map_err(failed)?;
        worker.run(signals.next()).await;
        endpoint.close("the worker has been stopped").await;
        Ok(Exit::Success)
    })
}

/// Lists the workers of a cluster.
pub(super) fn list(cluster: &args::Cluster, printer: &Printer) -> Result<Exit, Failure> {
    let reply = block_on(ask(cluster, Request::Workers))?;
    let Reply::Workers(workers) = reply else { return Err(super::job::unexpected(reply)) };
    printer.result(&workers, || table(&workers));
    Ok(Exit::Success)
}

fn table(workers: &[WorkerInfo]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["worker", "address", "process", "slots", "free"]);
    for worker in workers {
        let process = format!("{} on {}", worker.process, worker.host);
        let (slots, free) = (worker.slots.to_string(), worker.free.to_string());
        table.add_row([worker.id[..8].to_owned(), worker.address.clone(), process, slots, free]);
    }
    table.trim_fmt()
}
