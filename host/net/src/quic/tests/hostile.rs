//! Workers of the cluster that do not keep to the rules, or vanish.

use bytes::Bytes;
use quinn::{RecvStream, SendStream};

use super::*;
use crate::{
    endpoint::rogue::{Rogue, hello},
    handshake::{Purpose, VERSION},
    wire::{
        batch::Encoder,
        event::WireEvent,
        frame::{Header, Kind, message},
        message::{Open, Return},
    },
};

/// A worker with a channel that a rogue feeds, and one that another worker does.
struct Scene {
    workers: Workers,
    receiver: conformance::Receiver,
    honest: (conformance::Sender, conformance::Receiver),
    _transports: [QuicTransport; 2],
}

const EXECUTION: ExecutionKey = ExecutionKey { job: 1, attempt: 0 };
const HONEST: ChannelId = ChannelId { edge: 0, from: 1, to: 0 };

impl Scene {
    fn new() -> Self {
        Self::with(EndpointOptions::default())
    }

    fn with(options: EndpointOptions) -> Self {
        let workers = Workers::with(options);
        let (rogue, honest, to) = (NodeId(1), place(&workers.sending), place(&workers.receiving));
        let route = move |channel: ChannelId| {
            let from = if channel == ID { Place { node: rogue, ..honest } } else { honest };
            Route { from, to, schema: schema() }
        };
        let transports = [&workers.sending, &workers.receiving].map(|e| e.transport(EXECUTION, route));
        let gate = transports[1].gate(&[ID, HONEST], BUDGET).expect("new");
        let mut receivers = conformance::receivers(gate, &[ID, HONEST], PATIENCE);
        let honest = (conformance::sender(&transports[0], HONEST, PATIENCE), receivers.remove(1));
        Self { workers, receiver: receivers.remove(0), honest, _transports: transports }
    }

    /// A rogue that has introduced itself.
    fn rogue(&self) -> Rogue {
        let rogue = Rogue::of(&self.workers.authority, &self.workers.receiving);
        let greeting = hello(VERSION, "test", Role::Worker, Purpose::Data);
        rogue.runtime.block_on(async {
            let (mut send, mut receive) = rogue.connection.open_bi().await.expect("one is allowed");
            send.write_all(&greeting).await.expect("sent");
            let _ = send.finish();
            receive.read_to_end(1000).await.expect("answered");
        });
        rogue
    }

    /// What the rogue is told, and the receiver of its channel, after these frames.
    fn check(mut self, expected: Expect, frames: impl FnOnce() -> Vec<Bytes>) {
        let rogue = self.rogue();
        let told = rogue.say(&[vec![open(EXECUTION)], frames()].concat().concat());
        let gone = self.receiver.ends_at_last();
        let reason = gone.reason.expect("it is known").to_string();
        let heard = without_node(&reason);
        expected.assert_eq(&format!("{told}\n{heard}"));
        self.others_are_not_disturbed();
    }

    fn others_are_not_disturbed(&mut self) {
        let (sender, receiver) = &mut self.honest;
        sender.sends(batch(9, 1));
        receiver.receives("batch 9");
    }
}

fn open(execution: ExecutionKey) -> Bytes {
    message(Kind::Open, 0, &Open::new(execution, ID, vec!["x int64".into()]))
}

fn rows(number: u64, count: usize) -> Vec<Bytes> {
    let millstream_types::StreamElement::Batch(batch) = batch(0, count) else { unreachable!("it is rows") };
    Encoder::new(&batch, &schema()).expect("fits").encode(0, number, false)
}

#[test]
fn rows_without_credit() {
    Scene::new().check(
        expect![[r#"
        it sent 1 credits' worth of rows without being granted more than 0
        worker NODE at IT sent 1 credits' worth of rows without being granted more than 0"#]],
        || (1..4).flat_map(|number| rows(number, 1)).collect(),
    );
}

#[test]
fn rows_that_cost_more_than_there_is() {
    // Only the header comes: what it promises is not waited for.
    Scene::new().check(
        expect![[r#"
        it sent 49 credits' worth of rows without being granted more than 2
        worker NODE at IT sent 49 credits' worth of rows without being granted more than 2"#]],
        || vec![rows(1, 100_000)[0].clone()],
    );
}

#[test]
fn more_events_than_there_are_places() {
    Scene::new().check(
        expect![[r#"
        it sent more than the 64 elements that may wait
        worker NODE at IT sent more than the 64 elements that may wait"#]],
        || (1..70).map(|number| message(Kind::Event, number, &WireEvent::Watermark(1))).collect(),
    );
}

#[test]
fn events_of_any_size() {
    Scene::new().check(
        expect![[r#"
            it sent a frame of the kind Event of 10002 bytes where 4096 may come
            worker NODE at IT sent a frame of the kind Event of 10002 bytes where 4096 may come"#]],
        || vec![message(Kind::Event, 1, &vec![0u8; 10_000])],
    );
}

#[test]
fn credits_that_it_never_had_are_given_back() {
    Scene::new().check(
        expect![[r#"
        it returned credits: 3 credits were used of 2 granted, 32768 bytes each
        worker NODE at IT returned credits: 3 credits were used of 2 granted, 32768 bytes each"#]],
        || vec![message(Kind::Return, 1, &Return { credits: 3 })],
    );
}

#[test]
fn damaged_rows() {
    Scene::new().check(
        expect![[r#"
        it sent a damaged frame: its checksum is a48a185f and should be 56e19b5c
        worker NODE at IT sent a damaged frame: its checksum is NODE and should be NODE"#]],
        || {
            let mut bytes = rows(1, 3).concat();
            let last = bytes.len() - 1;
            bytes[last] ^= 1;
            vec![bytes.into()]
        },
    );
}

#[test]
fn frames_that_are_repeated() {
    Scene::new().check(
        expect![[r#"
        it sent the frame 1 where the frame 2 belongs
        worker NODE at IT sent the frame 1 where the frame 2 belongs"#]],
        || [rows(1, 1), rows(1, 1)].concat(),
    );
}

#[test]
fn frames_of_an_unknown_kind() {
    Scene::new().check(
        expect![[r#"
        it sent a frame of the unknown kind 99
        worker NODE at IT sent a frame of the unknown kind 99"#]],
        || vec![vec![99; Header::LENGTH].into()],
    );
}

#[test]
fn frames_that_only_a_receiver_sends() {
    Scene::new().check(
        expect![[r#"
        it sent a frame of the kind Accepted where none may come
        worker NODE at IT sent a frame of the kind Accepted where none may come"#]],
        || vec![message(Kind::Accepted, 1, &())],
    );
}

#[test]
fn frames_that_end_in_the_middle() {
    Scene::new().check(
        expect![[r#"
        it ended the stream in the middle of a frame
        worker NODE at IT ended the stream in the middle of a frame"#]],
        || vec![rows(1, 1)[0].clone()],
    );
}

#[test]
fn a_stream_of_garbage() {
    let mut scene = Scene::new();
    let told = scene.rogue().say(b"GET / HTTP/1.1\r\nHost: somewhere.example\r\n\r\n");
    expect!["it sent a frame of the unknown kind 71"].assert_eq(&told);
    let told = scene.rogue().say(&message(Kind::Want, 0, &0u32));
    expect!["it sent a frame of the kind Want of 1 bytes where 0 may come"].assert_eq(&told);
    let told = scene.rogue().say(&message(Kind::Open, 0, &vec![0u8; 2 << 20]));
    expect!["it sent a frame of the kind Open of 2097156 bytes where 1048576 may come"].assert_eq(&told);
    scene.others_are_not_disturbed();
}

#[test]
fn a_stream_that_says_nothing() {
    let options =
        EndpointOptions { opening_timeout: Duration::from_millis(300), ..EndpointOptions::default() };
    let mut scene = Scene::with(options);
    scene.others_are_not_disturbed();
    let rogue = scene.rogue();
    let told = rogue.runtime.block_on(async {
        let (mut send, _receive) = rogue.connection.open_bi().await.expect("allowed");
        send.write_all(&[1]).await.expect("sent");
        rogue.ended().await
    });
    expect!["it has not said within 300ms which channel it opens"].assert_eq(&told);
    scene.others_are_not_disturbed();
}

#[test]
fn a_process_that_vanishes_is_noticed() {
    let options =
        EndpointOptions { data_idle_timeout: Duration::from_millis(500), ..EndpointOptions::default() };
    let mut scene = Scene::with(options);
    let rogue = scene.rogue();
    let streams = rogue.runtime.block_on(async {
        let (mut send, receive) = rogue.connection.open_bi().await.expect("allowed");
        send.write_all(&open(EXECUTION)).await.expect("sent");
        send.write_all(&rows(1, 1).concat()).await.expect("sent");
        (send, receive)
    });
    scene.receiver.receives("batch 0");
    vanish(rogue, streams);
    let gone = scene.receiver.ends().to_string();
    assert!(gone.ends_with("is lost: it does not answer any more"), "{gone}");
    scene.others_are_not_disturbed();
}

/// The process is killed: nobody says goodbye.
fn vanish(rogue: Rogue, streams: (SendStream, RecvStream)) {
    rogue.runtime.shutdown_background();
    std::mem::forget(streams);
}
