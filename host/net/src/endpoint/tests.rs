//! Endpoints that connect to each other, and to peers that do what they should not.

use std::time::{Duration, Instant, SystemTime};

use expect_test::{Expect, expect};
use futures_util::FutureExt;

use super::*;
use crate::{
    CertificateAuthority, ClusterId, ControlError, IssuedCertificate,
    endpoint::rogue::{Rogue, hello},
    handshake::{MAGIC, VERSION},
};

/// A cluster of this process.
struct Cluster {
    authority: CertificateAuthority,
    options: EndpointOptions,
}

impl Cluster {
    fn new() -> Self {
        Self::named("ours")
    }

    fn named(name: &str) -> Self {
        let cluster = name.parse::<ClusterId>().expect("valid");
        let options = EndpointOptions { threads: 1, ..EndpointOptions::default() };
        Self { authority: CertificateAuthority::new(cluster).expect("made"), options }
    }

    fn endpoint(&self, role: Role) -> Endpoint {
        let identity = self.authority.identity(role).expect("issued");
        Endpoint::bind(LOOPBACK.parse().expect("an address"), identity, self.options.clone()).expect("bound")
    }

    fn identity(&self, issued: &IssuedCertificate) -> Identity {
        Identity::from_pem(self.authority.certificate_pem(), &issued.certificate_pem, &issued.key_pem)
            .expect("good")
    }
}

const LOOPBACK: &str = "127.0.0.1:0";
const DAY: Duration = Duration::from_secs(86_400);

fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let limited = async { tokio::time::timeout(Duration::from_secs(30), future).await };
    runtime.block_on(limited).expect("within half a minute")
}

/// Two processes with a control stream between them: that of a worker, and the coordinator's.
async fn connected(worker: &Endpoint, coordinator: &Endpoint) -> (ControlStream, ControlStream) {
    let connect = worker.connect_control(coordinator.address(), Role::Coordinator);
    let (connected, accepted) = tokio::join!(connect, coordinator.accept_control());
    let ((peer, ours), (other, theirs)) = (connected.expect("connected"), accepted.expect("accepted"));
    assert_eq!((peer.role, peer.node), (Role::Coordinator, coordinator.node()));
    assert_eq!((other.role, other.node, other.address), (Role::Worker, worker.node(), worker.address()));
    (ours, theirs)
}

#[test]
fn messages_go_both_ways_whole_and_in_order() {
    let cluster = Cluster::new();
    let (worker, coordinator) = (cluster.endpoint(Role::Worker), cluster.endpoint(Role::Coordinator));
    block_on(async {
        let (ours, theirs) = connected(&worker, &coordinator).await;
        let ((mut sender, mut receiver), mut theirs) = (ours.split(), theirs);
        let large = vec![7u8; 5 << 20];
        let feed = async {
            for i in 0..100u32 {
                sender.send(&(i, "text")).await.expect("sent");
            }
            sender.send(&large).await.expect("sent");
            sender.finish().await.expect("all of it arrives");
        };
        let check = async {
            for i in 0..100u32 {
                assert_eq!(theirs.receive::<(u32, String)>().await, Ok((i, "text".to_owned())));
            }
            assert_eq!(theirs.receive::<Vec<u8>>().await.as_ref(), Ok(&large));
            assert!(theirs.receive::<u32>().await.expect_err("the end").is_closed());
            theirs.send("the other direction is open").await.expect("sent");
        };
        tokio::join!(feed, check);
        assert_eq!(receiver.receive::<String>().await.as_deref(), Ok("the other direction is open"));
    });
}

#[test]
fn a_cancelled_receive_loses_nothing() {
    let cluster = Cluster::new();
    let (worker, coordinator) = (cluster.endpoint(Role::Worker), cluster.endpoint(Role::Coordinator));
    block_on(async {
        let (mut ours, mut theirs) = connected(&worker, &coordinator).await;
        let feed = async {
            for i in 0..20u32 {
                ours.send(&vec![i; 200_000]).await.expect("sent");
            }
        };
        let check = async {
            let (mut received, mut cancelled) = (0, 0);
            while received < 20 {
                match theirs.receive::<Vec<u32>>().now_or_never() {
                    Some(message) => {
                        assert_eq!(message.expect("sent").first(), Some(&received));
                        received += 1;
                    }
                    None => {
                        cancelled += 1;
                        tokio::task::yield_now().await;
                    }
                }
            }
            assert!(cancelled > 0);
        };
        tokio::join!(feed, check);
    });
}

#[test]
fn what_was_sent_before_the_stream_was_dropped_arrives() {
    let cluster = Cluster::new();
    let (worker, coordinator) = (cluster.endpoint(Role::Worker), cluster.endpoint(Role::Coordinator));
    block_on(async {
        let (mut ours, mut theirs) = connected(&worker, &coordinator).await;
        ours.send(&vec![1u8; 1 << 19]).await.expect("sent");
        drop((ours, worker));
        assert_eq!(theirs.receive::<Vec<u8>>().await.expect("whole").len(), 1 << 19);
        let end = theirs.receive::<u8>().await.expect_err("gone");
        assert!(end.is_closed(), "{end}");
        let end = theirs.send(&1).await;
        assert!(end.is_ok() || end.is_err_and(|end| end.is_closed()));
    });
}

#[test]
fn closing_tells_everybody_why() {
    let cluster = Cluster::new();
    let (worker, coordinator) = (cluster.endpoint(Role::Worker), cluster.endpoint(Role::Coordinator));
    block_on(async {
        let (mut ours, _theirs) = connected(&worker, &coordinator).await;
        coordinator.close("maintenance").await;
        let error = ours.receive::<u8>().await.expect_err("closed");
        assert!(error.is_closed() && error.to_string().ends_with("closed: maintenance"), "{error}");
        assert_eq!(coordinator.accept_control().await.map(|_| ()), Err(EndpointClosed));
        let again = coordinator.connect_control(worker.address(), Role::Worker).await;
        assert_eq!(again.map(|_| ()), Err(ConnectError::Closed));
    });
}

#[test]
fn whoever_is_refused_is_told_why() {
    let cluster = Cluster::new();
    let (worker, coordinator) = (cluster.endpoint(Role::Worker), cluster.endpoint(Role::Coordinator));
    block_on(async {
        let (mut ours, theirs) = connected(&worker, &coordinator).await;
        theirs.refuse("there are workers enough");
        let error = ours.receive::<u8>().await.expect_err("refused");
        let refused =
            matches!(&error, ControlError::Refused { reason, .. } if reason == "there are workers enough");
        assert!(refused, "{error:?}");
        // What is sent is under way and not received, so that nobody takes it any more shows in a moment.
        let since = Instant::now();
        while ours.send(&1u8).await.is_ok() {
            assert!(since.elapsed() < Duration::from_secs(10), "it is sent for ever");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
}

#[test]
fn messages_beyond_the_limit_or_of_another_kind_end_the_stream() {
    let mut cluster = Cluster::new();
    cluster.options.frame_limit = 1000;
    let (worker, coordinator) = (cluster.endpoint(Role::Worker), cluster.endpoint(Role::Coordinator));
    block_on(async {
        let (mut ours, mut theirs) = connected(&worker, &coordinator).await;
        let own = ours.send(&[0u8; 2000][..]).await.expect_err("this end's own limit");
        assert!(matches!(own, ControlError::TooLarge { direction: "to", bytes: 2002, limit: 1000, .. }));
        ours.send("still open").await.expect("nothing was sent");
        assert_eq!(theirs.receive::<String>().await.as_deref(), Ok("still open"));
        ours.set_frame_limit(1 << 20);
        ours.send(&[0u8; 2000][..]).await.expect("sent");
        let error = theirs.receive::<Vec<u8>>().await.expect_err("too large");
        assert!(matches!(error, ControlError::TooLarge { direction: "from", bytes: 2002, limit: 1000, .. }));
        let told = ours.receive::<u8>().await.expect_err("closed").to_string();
        assert!(told.ends_with("a message of 2002 bytes: at most 1000 are taken"), "{told}");

        let (mut ours, mut theirs) = connected(&worker, &coordinator).await;
        ours.send(&(1u8, 2u8)).await.expect("sent");
        let error = theirs.receive::<u8>().await.expect_err("no u8").to_string();
        assert!(error.ends_with("is no u8: 1 bytes are left over"), "{error}");
        assert!(ours.receive::<u8>().await.is_err());
    });
}

#[test]
fn whoever_is_not_who_was_expected_is_not_spoken_to() {
    let (ours, theirs) = (Cluster::new(), Cluster::named("theirs"));
    let (worker, stranger) = (ours.endpoint(Role::Worker), theirs.endpoint(Role::Coordinator));
    let check = |expected: Expect, from: &Endpoint, to: &Endpoint, role| {
        let error = block_on(from.connect_control(to.address(), role)).map(|_| ()).expect_err("refused");
        expected.assert_eq(&error.to_string().replace(&to.address().to_string(), "IT"));
    };
    check(
        expect![
            "IT is not the coordinator that was expected there: its certificate is not of this cluster: another authority has signed it"
        ],
        &worker,
        &stranger,
        Role::Coordinator,
    );
    check(
        expect![
            "IT is not the coordinator that was expected there: its certificate is not that of the role and cluster which were expected"
        ],
        &worker,
        &ours.endpoint(Role::Worker),
        Role::Coordinator,
    );
    let expired =
        ours.authority.issue_within(Role::Coordinator, SystemTime::now() - DAY * 3, SystemTime::now() - DAY);
    let expired = ours.identity(&expired.expect("issued"));
    let expired = Endpoint::bind(LOOPBACK.parse().expect("an address"), expired, EndpointOptions::default())
        .expect("bound");
    check(
        expect![
            "IT is not the coordinator that was expected there: its certificate has expired or is not valid yet"
        ],
        &worker,
        &expired,
        Role::Coordinator,
    );
    check(
        expect!["IT refuses this process: this process' certificate has expired or is not valid yet"],
        &expired,
        &worker,
        Role::Worker,
    );
}

#[test]
fn where_nobody_listens_is_said_in_time() {
    let mut cluster = Cluster::new();
    cluster.options.handshake_timeout = Duration::from_millis(200);
    let worker = cluster.endpoint(Role::Worker);
    let silent = std::net::UdpSocket::bind(LOOPBACK).expect("some port is free");
    let address = silent.local_addr().expect("bound");
    let error = block_on(worker.connect_control(address, Role::Coordinator)).map(|_| ());
    let reason = "not within 200ms".to_owned();
    assert_eq!(error, Err(ConnectError::Unreachable { address, reason }));
}

#[test]
fn peers_that_do_what_they_should_not_are_told_so_and_others_are_not_disturbed() {
    let cluster = Cluster::new();
    let (worker, coordinator) = (cluster.endpoint(Role::Worker), cluster.endpoint(Role::Coordinator));
    let streams = block_on(connected(&worker, &coordinator));
    let check = |expected: Expect, bytes: &[u8]| {
        expected.assert_eq(&Rogue::of(&cluster.authority, &coordinator).say(bytes));
    };
    check(expect!["it does not speak millstream's protocol"], b"GET / HTTP/1.1\r\n\r\n");
    check(expect!["it does not speak millstream's protocol"], b"MILL");
    check(
        expect!["it speaks version 2 of the protocol, and this is version 1"],
        &hello(VERSION + 1, "ours", Role::Worker, Purpose::Control),
    );
    check(
        expect!["it is of the cluster `theirs`, and this is `ours`"],
        &hello(VERSION, "theirs", Role::Worker, Purpose::Control),
    );
    check(
        expect!["its certificate is not that of a coordinator"],
        &hello(VERSION, "ours", Role::Coordinator, Purpose::Control),
    );
    check(expect!["rows travel between workers only"], &hello(VERSION, "ours", Role::Worker, Purpose::Data));
    check(expect!["its greeting is damaged"], &[MAGIC as &[u8], &[1, 0, 255, 255]].concat());
    check(expect!["its greeting is damaged"], &[MAGIC as &[u8], &[1, 0, 3, 0, 255, 255, 255]].concat());
    block_on(async {
        let (mut ours, mut theirs) = streams;
        ours.send(&1u8).await.expect("still there");
        assert_eq!(theirs.receive::<u8>().await, Ok(1));
    });
}

#[test]
fn a_denial_is_readable_in_every_version() {
    let cluster = Cluster::new();
    let coordinator = cluster.endpoint(Role::Coordinator);
    let rogue = Rogue::of(&cluster.authority, &coordinator);
    let greeting = hello(VERSION + 1, "ours", Role::Worker, Purpose::Control);
    let answer = rogue.runtime.block_on(async {
        let (mut send, mut receive) = rogue.connection.open_bi().await.expect("one is allowed");
        send.write_all(&greeting).await.expect("sent");
        receive.read_to_end(1000).await.expect("answered before the connection is closed")
    });
    let text = "it speaks version 2 of the protocol, and this is version 1";
    assert_eq!(answer, [&b"MILLDENY\x01\0"[..], &[text.len() as u8 + 1, 0, 1], text.as_bytes()].concat());
}

#[test]
fn peers_without_a_certificate_or_with_a_bad_one_do_not_get_in() {
    let (ours, theirs) = (Cluster::new(), Cluster::named("ours"));
    let coordinator = ours.endpoint(Role::Coordinator);
    let check = |expected: Expect, config: ClientConfig| {
        let ended = match Rogue::connect(coordinator.address(), config, "coordinator.ours.millstream") {
            Ok(rogue) => rogue.runtime.block_on(rogue.ended()),
            Err(refused) => refused,
        };
        expected.assert_eq(&ended);
    };
    let trusting = |identity: &Identity, authenticated: bool| {
        crate::identity::trusting_config(identity, authenticated).expect("good")
    };
    check(
        expect!["no certificate was shown"],
        trusting(&ours.authority.identity(Role::Worker).expect("issued"), false),
    );
    check(
        expect!["this process' certificate is not of this cluster: its authority has another key"],
        trusting(&theirs.authority.identity(Role::Worker).expect("issued"), true),
    );
    let expired =
        ours.authority.issue_within(Role::Worker, SystemTime::now() - DAY * 3, SystemTime::now() - DAY);
    check(
        expect!["this process' certificate has expired or is not valid yet"],
        trusting(&ours.identity(&expired.expect("issued")), true),
    );
}

#[test]
fn a_handshake_without_an_end_is_cut() {
    let mut cluster = Cluster::new();
    cluster.options.handshake_timeout = Duration::from_millis(300);
    let coordinator = cluster.endpoint(Role::Coordinator);
    let (silent, slow) =
        (Rogue::of(&cluster.authority, &coordinator), Rogue::of(&cluster.authority, &coordinator));
    let started = Instant::now();
    let begun = hello(VERSION, "ours", Role::Worker, Purpose::Control);
    let ended = slow.runtime.block_on(async {
        let (mut stream, _receive) = slow.connection.open_bi().await.expect("one is allowed");
        for byte in begun {
            let _ = stream.write_all(&[byte]).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        slow.ended().await
    });
    expect!["the handshake has no end"].assert_eq(&ended);
    expect!["the handshake has no end"].assert_eq(&silent.runtime.block_on(silent.ended()));
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_peer_that_vanishes_is_noticed_and_one_that_is_quiet_is_kept() {
    let mut cluster = Cluster::new();
    cluster.options.control_idle_timeout = Duration::from_millis(500);
    cluster.options.data_idle_timeout = Duration::from_millis(500);
    let (worker, coordinator) = (cluster.endpoint(Role::Worker), cluster.endpoint(Role::Coordinator));
    let rogue = Rogue::of(&cluster.authority, &coordinator);
    let (mut quiet, mut vanished) = block_on(async {
        let streams = connected(&worker, &coordinator).await;
        let greeting = hello(VERSION, "ours", Role::Worker, Purpose::Control);
        let (mut stream, _receive) = rogue.connection.open_bi().await.expect("one is allowed");
        stream.write_all(&greeting).await.expect("sent");
        let (_, accepted) = coordinator.accept_control().await.expect("accepted");
        // The stream stays open until its runtime goes.
        std::mem::forget(stream);
        std::mem::forget(_receive);
        (streams, accepted)
    });
    let started = Instant::now();
    rogue.runtime.shutdown_background();
    let error = block_on(vanished.receive::<u8>()).expect_err("nobody is there");
    assert!(
        matches!(&error, ControlError::Lost { reason, .. } if reason == "it does not answer any more"),
        "{error}"
    );
    assert!(started.elapsed() < Duration::from_secs(3));
    block_on(async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        quiet.0.send(&1u8).await.expect("still there");
        assert_eq!(quiet.1.receive::<u8>().await, Ok(1));
    });
}

#[test]
fn handshakes_at_a_time_are_bounded() {
    let mut cluster = Cluster::new();
    cluster.options.handshakes = 1;
    let coordinator = cluster.endpoint(Role::Coordinator);
    let _silent = Rogue::of(&cluster.authority, &coordinator);
    let config = cluster.authority.identity(Role::Worker).expect("issued").client_config().expect("good");
    let refused = Rogue::connect(coordinator.address(), config, "coordinator.ours.millstream");
    assert!(refused.is_err());
}

#[test]
fn the_last_handle_takes_the_threads_with_it() {
    let threads = || std::fs::read_dir("/proc/self/task").map_or(0, |threads| threads.count());
    let cluster = Cluster::new();
    let before = threads();
    for _ in 0..20 {
        let (worker, coordinator) = (cluster.endpoint(Role::Worker), cluster.endpoint(Role::Coordinator));
        let streams = block_on(connected(&worker, &coordinator));
        drop((worker, coordinator, streams));
    }
    let deadline = Instant::now() + Duration::from_secs(20);
    // Other tests have threads too.
    while threads() > before + 30 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(threads() <= before + 30, "{} of {before}", threads());
}
