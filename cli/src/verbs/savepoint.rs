//! `millstream savepoint` and `millstream stop`: snapshots of a running job for its user.

use millstream_storage::Storage;
use millstream_worker::SnapshotTaken;

use crate::{
    args,
    control::{Reply, Request, connect},
    exit::{Exit, Failure},
    printer::Printer,
    summary,
};

/// Has a savepoint taken of a job that goes on.
pub(crate) fn savepoint(args: &args::Savepoint, printer: &Printer) -> Result<Exit, Failure> {
    let request = Request::Savepoint { folder: absolute(args.to.as_deref())? };
    super::snapshots::block_on(async {
        let mut job = connect(&args.target.checkpoint_dir, args.target.job.as_deref()).await?;
        if let Reply::Taken(taken) = job.ask(&request).await? {
            printer.result(&taken, || text(&taken, job.job()));
        }
        Ok(Exit::Success)
    })
}

/// Stops a job.
pub(crate) fn stop(args: &args::Stop, printer: &Printer) -> Result<Exit, Failure> {
    let folder = absolute(args.at.to.as_deref())?;
    let request = Request::Stop { savepoint: args.at.savepoint, folder, drain: args.at.drain };
    super::snapshots::block_on(async {
        let mut job = connect(&args.target.checkpoint_dir, args.target.job.as_deref()).await?;
        let name = job.job().to_owned();
        let reply = job.ask(&request).await?;
        job.ended().await;
        match reply {
            Reply::Taken(taken) => printer.result(&taken, || format!("{}\nstopped", text(&taken, &name))),
            _ => {
                let drained = serde_json::json!({ "job": name, "drained": true });
                printer.result(&drained, || format!("`{name}` has processed what it had read, and stopped"));
            }
        }
        Ok(Exit::Success)
    })
}

fn text(taken: &SnapshotTaken, job: &str) -> String {
    let kind = if taken.savepoint { "savepoint" } else { "checkpoint" };
    let (id, path, took) = (taken.id, &taken.path, taken.took_ms);
    let bytes = summary::count(taken.bytes);
    format!("{kind} {id} of `{job}`, {bytes} bytes in {took} ms: {path}\ngo on with `--from {path}`")
}

/// The process of the job may be in another folder.
fn absolute(place: Option<&str>) -> Result<Option<String>, Failure> {
    place.map(Storage::absolute).transpose().map_err(super::snapshots::failed)
}
