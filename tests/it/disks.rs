//! Disks that do what disks do: lose what was not synced when the power fails, hang, and are slow. They are file systems
//! of their own, which takes root.

use std::{
    env,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::{
    subject::{Subject, assert_same, lines},
    support::{Output, command, finish},
};

/// An ext4 file system in a file.
struct Disk {
    folder: TempDir,
}

impl Disk {
    /// A new one; none where it cannot be had, which fails where nothing may be left out.
    #[expect(clippy::print_stdout, reason = "whoever runs the tests has to see what was left out")]
    fn new() -> Option<Self> {
        let folder = TempDir::new().expect("a temporary folder");
        std::fs::create_dir(folder.path().join("mount")).expect("it is empty");
        let disk = Self { folder };
        let image = disk.image();
        let made = run(&["truncate", "-s", "128M", &image]) && run(&["mkfs.ext4", "-q", "-F", &image]);
        if made && disk.mount() {
            return Some(disk);
        }
        let is_strict = env::var("CI").is_ok_and(|value| value == "true");
        assert!(!is_strict, "a file system cannot be mounted, which takes root and e2fsprogs");
        println!("left out: a file system cannot be mounted, which takes root and e2fsprogs");
        None
    }

    fn image(&self) -> String {
        self.folder.path().join("image").display().to_string()
    }

    /// Where it is mounted.
    fn path(&self) -> String {
        self.folder.path().join("mount").display().to_string()
    }

    fn mount(&self) -> bool {
        run(&["mount", "-o", "loop,noauto_da_alloc", &self.image(), &self.path()])
    }

    /// The power fails: from now on nothing reaches the disk, and what was not synced has not.
    fn fail(&self) {
        let script = "import fcntl, os, struct, sys\n\
             fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587D, struct.pack('I', 2))";
        assert!(run(&["python3", "-c", script, &self.path()]), "the file system can be shut down");
    }

    /// The power is back.
    fn come_back(&self) {
        assert!(run(&["umount", &self.path()]) && self.mount(), "its journal makes it whole");
    }

    /// Nothing that is written gets any further, until this is undone.
    fn hang(&self) {
        assert!(run(&["fsfreeze", "--freeze", &self.path()]), "it is mounted");
    }

    fn go_on(&self) {
        assert!(run(&["fsfreeze", "--unfreeze", &self.path()]), "it hangs");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Whoever is stuck there would never end.
        run(&["fsfreeze", "--unfreeze", &self.path()]);
        run(&["umount", "--lazy", &self.path()]);
    }
}

fn run(words: &[&str]) -> bool {
    let mut command = Command::new(words[0]);
    let status = command.args(&words[1..]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// An example with bids, which runs some seconds.
fn bids(example: &str, checkpoint: &str, records: u32) -> Subject {
    let paced = format!("records = {records}\nrate = 50000");
    let settings = format!("parallelism = 2\ncheckpoint = {{ {checkpoint} }}");
    Subject::example(example, &[("parallelism = 2", &settings), ("records = 1000000", &paced)])
}

/// The command that runs it with checkpoints and rows where it is told.
fn placed(subject: &Subject, checkpoints: &Path, out: &Path) -> Command {
    let mut command = command(out);
    command.arg("run").arg(subject.path("job.toml")).args(["--quiet", "--json", "--from", "latest"]);
    command.arg("--checkpoint-dir").arg(checkpoints);
    command
}

fn end(child: std::process::Child) -> Output {
    let output = child.wait_with_output().expect("a child");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Output { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

#[test]
fn a_power_failure_loses_nothing_that_a_checkpoint_has() {
    let Some(disk) = Disk::new() else { return };
    let subject = bids("nexmark-q5", "interval = \"20ms\"", 150_000);
    let place = Path::new(&disk.path()).to_owned();
    let start = || placed(&subject, &place.join("checkpoints"), &place.join("out"));
    let mut gone_on = 0;
    for after in [700, 450, 1000, 300, 600] {
        let mut child = start().stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the command");
        thread::sleep(Duration::from_millis(after));
        disk.fail();
        // It may have seen that by itself.
        child.kill().ok();
        gone_on += usize::from(end(child).stderr.contains("going on from checkpoint"));
        disk.come_back();
    }
    let output = finish(&mut start()).success();
    gone_on += usize::from(output.stderr.contains("going on from checkpoint"));
    assert!(gone_on >= 3, "only {gone_on} starts had a checkpoint to go on from");
    assert_same(&lines(&place.join("out/nexmark-q5")), &subject.undisturbed(), "after power failures");
}

#[test]
fn a_sink_that_hangs_when_it_shows_its_rows_holds_up_the_job_and_no_more() {
    let Some(disk) = Disk::new() else { return };
    // Which writes all the time.
    let subject =
        bids("nexmark-q1", "interval = \"50ms\", timeout = \"500ms\", tolerable-failures = 1000", 200_000);
    let place = Path::new(&disk.path()).to_owned();
    let mut command = placed(&subject, &subject.path("checkpoints"), &place.join("out"));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command");
    thread::sleep(Duration::from_millis(1200));
    disk.hang();
    thread::sleep(Duration::from_secs(3));
    disk.go_on();
    let output = end(child).success();
    let checkpoints = &output.json()["checkpoints"];
    assert!(checkpoints["failed"].as_u64().is_some_and(|failed| failed >= 1), "{checkpoints}");
    assert!(checkpoints["completed"].as_u64().is_some_and(|completed| completed > 5), "{checkpoints}");
    assert_eq!(output.json()["failures"].as_array().map_or(0, Vec::len), 0, "the job did not fail");
    assert_same(&lines(&place.join("out/nexmark-q1")), &subject.undisturbed(), "with a disk that hung");
}

#[test]
fn storage_that_hangs_fails_checkpoints_while_the_job_goes_on() {
    let Some(disk) = Disk::new() else { return };
    let subject =
        bids("nexmark-q5", "interval = \"50ms\", timeout = \"300ms\", tolerable-failures = 1000", 400_000);
    let mut command = placed(&subject, &Path::new(&disk.path()).join("checkpoints"), &subject.path("out"));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command");
    let begun = Instant::now();
    thread::sleep(Duration::from_millis(800));
    // It is slow: most of the time it does nothing.
    for _ in 0..8 {
        disk.hang();
        thread::sleep(Duration::from_millis(400));
        disk.go_on();
        thread::sleep(Duration::from_millis(60));
    }
    let output = end(child).success();
    let checkpoints = &output.json()["checkpoints"];
    assert!(checkpoints["failed"].as_u64().is_some_and(|failed| failed >= 1), "{checkpoints}");
    assert!(checkpoints["completed"].as_u64().is_some_and(|completed| completed > 3), "{checkpoints}");
    assert_eq!(output.json()["failures"].as_array().map_or(0, Vec::len), 0, "the job did not fail");
    assert!(begun.elapsed() < Duration::from_secs(40), "the rows waited for the storage");
    assert_same(&subject.rows(), &subject.undisturbed(), "with slow storage");
}
