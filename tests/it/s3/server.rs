//! A server that speaks the protocol of S3: a process of its own, with the objects in its memory.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// A running server, with a bucket. It ends with this.
pub(super) struct Server {
    process: Child,
    port: u16,
}

impl Server {
    pub(super) fn start() -> Self {
        let target =
            Path::new(env!("CARGO_BIN_EXE_millstream")).ancestors().nth(2).expect("the target folder");
        let program = target.join("s3-server/bin/moto_server");
        assert!(
            program.is_file(),
            "there is no S3 server in {}: `cargo xtask test` installs it, which takes python3 with venv",
            program.display()
        );
        let port = free_port();
        let mut command = Command::new(program);
        command.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it was installed");
        let server = Self { process, port };
        let since = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(since.elapsed() < Duration::from_secs(60), "the S3 server does not start");
            thread::sleep(Duration::from_millis(50));
        }
        let (status, body) = server.ask("PUT", "", "");
        assert_eq!(status, 200, "{body}");
        server
    }

    /// Has a command find it.
    pub(super) fn known_to<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .env("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{}", self.port))
            .env("AWS_ALLOW_HTTP", "true")
            .env("AWS_REGION", "us-east-1")
            .env("AWS_ACCESS_KEY_ID", "test")
            .env("AWS_SECRET_ACCESS_KEY", "test")
    }

    /// Writes an object, as somebody else would.
    pub(super) fn put(&self, key: &str, text: &str) {
        let (status, body) = self.ask("PUT", key, text);
        assert_eq!(status, 200, "{body}");
    }

    /// Reads an object.
    pub(super) fn get(&self, key: &str) -> Option<String> {
        let (status, body) = self.ask("GET", key, "");
        (status == 200).then_some(body)
    }

    /// The keys of all objects, ascending.
    pub(super) fn keys(&self) -> Vec<String> {
        let (_, body) = self.ask("GET", "?list-type=2", "");
        assert!(body.contains("<IsTruncated>false"), "the test has to ask for more: {body}");
        let behind = body.split("<Key>").skip(1);
        behind.filter_map(|text| Some(text.split_once("</Key>")?.0.to_owned())).collect()
    }

    /// Has it answer nobody, as a network that hangs, for a while.
    pub(super) fn hang(&self, duration: Duration) {
        self.signal("-STOP");
        thread::sleep(duration);
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.process.id().to_string()]).status();
        assert!(status.expect("a command of the system").success());
    }

    fn ask(&self, method: &str, key: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        let separator = if key.starts_with('?') { "" } else { "/" };
        let request = format!(
            "{method} /{BUCKET}{separator}{key} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n{SIGNED}Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
            self.port,
            body.len()
        );
        stream.write_all(request.as_bytes()).expect("it listens");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("it answers");
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split_whitespace().nth(1).and_then(|status| status.parse().ok());
        let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
        (status.unwrap_or_else(|| panic!("no answer of HTTP: {answer}")), body.unwrap_or_default())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port of this machine");
    listener.local_addr().expect("it is bound").port()
}

/// The bucket that it has.
pub(super) const BUCKET: &str = "snapshots";
/// It wants to know who asks, and believes what it is told.
const SIGNED: &str = "Authorization: AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=00\r\n";
