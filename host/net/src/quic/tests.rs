//! Channels between two processes' endpoints, and peers that do what they should not.

mod hostile;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use expect_test::{Expect, expect};
use millstream_types::{DataType, Field};

use super::*;
use crate::{
    CertificateAuthority, Disconnected, EndpointOptions, Role,
    conformance::{self, Sides, batch, schema},
};

/// Two workers of a cluster.
struct Workers {
    authority: CertificateAuthority,
    sending: Endpoint,
    receiving: Endpoint,
    jobs: AtomicU32,
}

impl Workers {
    fn new() -> Self {
        Self::with(EndpointOptions::default())
    }

    fn with(options: EndpointOptions) -> Self {
        let authority = CertificateAuthority::new("test".parse().expect("valid")).expect("made");
        let [sending, receiving] = [(); 2].map(|()| endpoint(&authority, &options));
        Self { authority, sending, receiving, jobs: AtomicU32::new(0) }
    }

    /// A job whose channels all lead from the one to the other.
    fn job(&self) -> Sides {
        let execution = ExecutionKey { job: self.jobs.fetch_add(1, Relaxed).into(), attempt: 0 };
        let [sending, receiving] =
            [&self.sending, &self.receiving].map(|endpoint| self.transport(endpoint, execution));
        Sides { sending: Arc::new(sending), receiving: Arc::new(receiving), patience: PATIENCE }
    }

    fn transport(&self, endpoint: &Endpoint, execution: ExecutionKey) -> QuicTransport {
        let (from, to) = (place(&self.sending), place(&self.receiving));
        endpoint.transport(execution, move |_| Route { from, to, schema: schema() })
    }
}

fn endpoint(authority: &CertificateAuthority, options: &EndpointOptions) -> Endpoint {
    let identity = authority.identity(Role::Worker).expect("issued");
    Endpoint::bind("127.0.0.1:0".parse().expect("an address"), identity, options.clone()).expect("bound")
}

fn place(endpoint: &Endpoint) -> Place {
    Place { node: endpoint.node(), address: endpoint.address() }
}

const PATIENCE: Duration = Duration::from_millis(150);

#[test]
fn conforms() {
    let workers = Workers::new();
    conformance::run(|| workers.job());
}

#[test]
fn a_gate_mixes_channels_of_this_process_and_others() {
    let workers = Workers::new();
    let (here, there) = (place(&workers.receiving), place(&workers.sending));
    let route = move |channel: ChannelId| Route {
        from: if channel.from == 0 { here } else { there },
        to: here,
        schema: schema(),
    };
    let execution = ExecutionKey { job: 1, attempt: 3 };
    let receiving = workers.receiving.transport(execution, route);
    let sending = workers.sending.transport(execution, route);
    let ids = [0, 1].map(|from| ChannelId { edge: 0, from, to: 0 });
    let budget = GateBudget { exclusive: 2, floating: 2, elements: 64 };
    let gate = receiving.gate(&ids, budget).expect("new");
    let mut receivers = conformance::receivers(gate, &ids, PATIENCE);
    let mut local = conformance::sender(&receiving, ids[0], PATIENCE);
    let mut remote = conformance::sender(&sending, ids[1], PATIENCE);
    (0..4).for_each(|i| local.sends(batch(i, 1)));
    (0..2).for_each(|i| remote.sends(batch(i, 1)));
    remote.waits_with(batch(2, 1));
    (0..3).for_each(|i| receivers[0].receives(&format!("batch {i}")));
    (2..4).for_each(|i| remote.sends(batch(i, 1)));
    remote.waits_with(batch(4, 1));
    assert_eq!(sending.sender(ids[0]).map(|_| ()), Err(TransportError::Elsewhere(ids[0])));
    assert_eq!(sending.gate(&ids, budget).map(|_| ()), Err(TransportError::Elsewhere(ids[0])));
    assert_eq!(receiving.gate(&ids, budget).map(|_| ()), Err(TransportError::Open(ids[0])));
}

#[test]
fn either_end_may_be_there_first() {
    let workers = Workers::new();
    let execution = ExecutionKey { job: 1, attempt: 0 };
    let sending = workers.transport(&workers.sending, execution);
    let mut sender = conformance::sender(&sending, ID, PATIENCE);
    sender.waits_with(batch(0, 1));
    let receiving = workers.transport(&workers.receiving, execution);
    sender.waits_with(batch(0, 1));
    let mut receivers = conformance::receivers(receiving.gate(&[ID], BUDGET).expect("new"), &[ID], PATIENCE);
    sender.sends(batch(0, 1));
    receivers[0].receives("batch 0");
}

#[test]
fn attempts_that_are_over_are_refused_and_others_wait() {
    let workers = Workers::with(EndpointOptions {
        opening_timeout: Duration::from_secs(1),
        ..EndpointOptions::default()
    });
    let key = |attempt| ExecutionKey { job: 7, attempt };
    let _receiving = workers.transport(&workers.receiving, key(3));
    drop(workers.transport(&workers.receiving, ExecutionKey { job: 8, attempt: 1 }));
    let check = |expected: Expect, execution| {
        let sending = workers.transport(&workers.sending, execution);
        let gone = conformance::sender(&sending, ID, PATIENCE).ends();
        expected.assert_eq(&anonymous(&gone, &workers.receiving));
    };
    check(
        expect![
            "the other end of edge 0 from 0 to 0 is gone: worker NODE at IT refuses the channel: attempt 2 at job 00000000000000000000000000000007 is over: attempt 3 has begun"
        ],
        key(2),
    );
    check(
        expect![
            "the other end of edge 0 from 0 to 0 is gone: worker NODE at IT refuses the channel: edge 0 from 0 to 0 of attempt 3 at job 00000000000000000000000000000007 has not been opened here within 1s"
        ],
        key(3),
    );
    check(
        expect![
            "the other end of edge 0 from 0 to 0 is gone: worker NODE at IT refuses the channel: edge 0 from 0 to 0 of attempt 4 at job 00000000000000000000000000000007 has not been opened here within 1s"
        ],
        key(4),
    );
    check(
        expect![
            "the other end of edge 0 from 0 to 0 is gone: worker NODE at IT refuses the channel: attempt 1 at job 00000000000000000000000000000008 is over"
        ],
        ExecutionKey { job: 8, attempt: 1 },
    );
}

#[test]
fn an_attempt_that_ends_leaves_the_next_one_alone() {
    let workers = Workers::new();
    let attempt = |attempt| {
        let execution = ExecutionKey { job: 1, attempt };
        let receiving = workers.transport(&workers.receiving, execution);
        let receivers = conformance::receivers(receiving.gate(&[ID], BUDGET).expect("new"), &[ID], PATIENCE);
        let sending = workers.transport(&workers.sending, execution);
        let sender = conformance::sender(&sending, ID, PATIENCE);
        (receiving, receivers, sending, sender)
    };
    let mut old = attempt(0);
    old.3.sends(batch(0, 1));
    let mut new = attempt(1);
    new.3.sends(batch(1, 1));
    // What the old one still sends comes to its own receiver or to nobody.
    old.3.sends(batch(2, 1));
    drop((old.0, old.1));
    assert_eq!(old.3.ends(), Disconnected::new(ID));
    new.3.sends(batch(3, 1));
    new.1[0].receives("batch 1");
    new.1[0].receives("batch 3");
    new.1[0].receives_nothing();
}

#[test]
fn schemas_are_compared() {
    let workers = Workers::new();
    let execution = ExecutionKey { job: 1, attempt: 0 };
    let receiving = workers.transport(&workers.receiving, execution);
    let _gate = receiving.gate(&[ID], BUDGET).expect("new");
    let (from, to) = (place(&workers.sending), place(&workers.receiving));
    let other = Schema::new(vec![Field::nullable("x", DataType::Int64), Field::new("t", DataType::Utf8)]);
    let sending = workers.sending.transport(execution, move |_| Route { from, to, schema: other.clone() });
    let gone = conformance::sender(&sending, ID, PATIENCE).ends();
    expect!["the other end of edge 0 from 0 to 0 is gone: worker NODE at IT refuses the channel: edge 0 from 0 to 0 has the columns x int64 here, and x int64?, t utf8 at the sender"].assert_eq(&anonymous(&gone, &workers.receiving));
}

#[test]
fn channels_are_fed_by_who_is_expected_only() {
    let workers = Workers::new();
    let execution = ExecutionKey { job: 1, attempt: 0 };
    let receiving = workers.transport(&workers.receiving, execution);
    let _gate = receiving.gate(&[ID], BUDGET).expect("new");
    let third = endpoint(&workers.authority, &EndpointOptions::default());
    let (from, to) = (place(&third), place(&workers.receiving));
    let sending = third.transport(execution, move |_| Route { from, to, schema: schema() });
    let gone = conformance::sender(&sending, ID, PATIENCE).ends();
    expect!["the other end of edge 0 from 0 to 0 is gone: worker NODE at IT refuses the channel: edge 0 from 0 to 0 is another process'"].assert_eq(&anonymous(&gone, &workers.receiving));
}

#[test]
fn an_address_that_another_process_has_now_is_found_out() {
    let workers = Workers::new();
    let (from, to) = (place(&workers.sending), Place { node: NodeId(7), ..place(&workers.receiving) });
    let execution = ExecutionKey { job: 1, attempt: 0 };
    let sending = workers.sending.transport(execution, move |_| Route { from, to, schema: schema() });
    let gone = conformance::sender(&sending, ID, PATIENCE).ends();
    expect!["the other end of edge 0 from 0 to 0 is gone: IT has been taken over by another process: worker NODE at IT"].assert_eq(&anonymous(&gone, &workers.receiving));
}

#[test]
fn both_ends_hear_that_the_other_process_has_gone() {
    let mut workers = Workers::with(EndpointOptions {
        data_idle_timeout: Duration::from_secs(1),
        ..EndpointOptions::default()
    });
    let sides = workers.job();
    let (mut sender, mut receiver) = conformance::open(&sides, 1, BUDGET);
    sender[0].sends(batch(0, 1));
    receiver[0].receives("batch 0");
    let address = workers.sending.address();
    // It says goodbye.
    conformance::block_on(workers.sending.close("the machine is needed for something else"));
    let text = receiver[0].ends().to_string().replace(&address.to_string(), "IT");
    expect!["the other end of edge 0 from 0 to 0 is gone: the connection to worker NODE at IT is lost: the machine is needed for something else"].assert_eq(&without_node(&text));
    assert!(sender[0].ends().reason.is_some());

    workers.sending = endpoint(&workers.authority, &EndpointOptions::default());
    let sides = workers.job();
    let (mut sender, _receiver) = conformance::open(&sides, 1, BUDGET);
    sender[0].sends(batch(0, 1));
    conformance::block_on(workers.receiving.close("the machine is needed for something else"));
    expect!["the other end of edge 0 from 0 to 0 is gone: the connection to worker NODE at IT is lost: the machine is needed for something else"].assert_eq(&anonymous(&sender[0].ends(), &workers.receiving));
}

#[test]
fn two_processes_that_connect_to_each_other_at_once_have_one_connection() {
    for _ in 0..20 {
        let workers = Workers::new();
        let (a, b) = (place(&workers.sending), place(&workers.receiving));
        let route = move |channel: ChannelId| {
            let (from, to) = if channel.edge == 0 { (a, b) } else { (b, a) };
            Route { from, to, schema: schema() }
        };
        let execution = ExecutionKey { job: 1, attempt: 0 };
        let transports = [&workers.sending, &workers.receiving].map(|e| e.transport(execution, route));
        let ids = [0, 1].map(|edge| ChannelId { edge, from: 0, to: 0 });
        let mut receivers = [(&transports[1], ids[0]), (&transports[0], ids[1])].map(|(transport, id)| {
            conformance::receivers(transport.gate(&[id], BUDGET).expect("new"), &[id], PATIENCE).remove(0)
        });
        let mut senders = [0, 1].map(|i| conformance::sender(&transports[i], ids[i], PATIENCE));
        for i in 0..2 {
            senders[i].sends(batch(i as i64, 1));
            receivers[i].receives(&format!("batch {i}"));
        }
        // The other one has been closed, or never was.
        let deadline = Instant::now() + Duration::from_secs(5);
        let open = || [&workers.sending, &workers.receiving].map(|e| e.inner().open_connections());
        while open() != [1, 1] {
            assert!(Instant::now() < deadline, "{:?}", open());
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn a_receiver_that_stops_holds_up_nobody_else() {
    let workers = Workers::new();
    let sides = workers.job();
    let budget = GateBudget { exclusive: 8, floating: 64, elements: 256 };
    let (mut senders, mut receivers) = conformance::open(&sides, 200, budget);
    // Of the first nobody takes anything: all credits that it can get are in its way.
    let mut stuck = 0;
    while senders[0].would_send(batch(0, 4096)) {
        stuck += 1;
    }
    assert!(stuck >= 8 / 3, "{stuck}");
    for round in 0..5 {
        for (sender, receiver) in senders.iter_mut().zip(&mut receivers).skip(1) {
            sender.sends(batch(round, 4096));
            receiver.receives(&format!("batch {round}"));
        }
    }
    receivers[0].receives("batch 0");
}

/// What is said of a lost channel, without what is another in each run.
fn anonymous(gone: &Disconnected, peer: &Endpoint) -> String {
    without_node(&gone.to_string().replace(&peer.address().to_string(), "IT"))
}

/// Processes are shown as the first digits of their number.
fn without_node(text: &str) -> String {
    let hex = |word: &str| word.len() == 8 && word.chars().all(|c| c.is_ascii_hexdigit());
    let shown = |word| match word {
        word if hex(word) => "NODE",
        word if word.starts_with("127.0.0.1:") => "IT",
        word => word,
    };
    text.split(' ').map(shown).collect::<Vec<_>>().join(" ")
}

const ID: ChannelId = ChannelId { edge: 0, from: 0, to: 0 };
const BUDGET: GateBudget = GateBudget { exclusive: 2, floating: 2, elements: 64 };

#[test]
fn rows_can_be_compressed() {
    let workers = Workers::with(EndpointOptions { compression: true, ..EndpointOptions::default() });
    let sides = workers.job();
    let (mut senders, mut receivers) = conformance::open(&sides, 1, BUDGET);
    senders[0].sends(batch(9, 1));
    receivers[0].receives("batch 9");
    receivers[0].receives_nothing();
    let before = bytes_sent(&workers);
    // Rows that are all the same: they cost what they take without compression, and go alone.
    for round in 0..3 {
        senders[0].sends(batch(round, 100_000));
        senders[0].waits_with(batch(9, 1));
        receivers[0].receives(&format!("batch {round}"));
        receivers[0].receives_nothing();
    }
    let sent = bytes_sent(&workers) - before;
    assert!(sent < 200_000, "{sent} bytes for 4.8 MB");
}

#[test]
fn packets_grow_to_what_was_found_to_be_best_and_none_is_lost() {
    let workers = Workers::new();
    let sides = workers.job();
    let (mut senders, mut receivers) = conformance::open(&sides, 1, GateBudget::default());
    for round in 0..200 {
        senders[0].sends(batch(round, 8192));
        receivers[0].receives(&format!("batch {round}"));
    }
    let stats = connection(&workers).stats();
    assert!((6_000..=6_500).contains(&stats.path.current_mtu), "{}", stats.path.current_mtu);
    assert!(stats.path.lost_packets < stats.path.sent_packets / 100, "{:?}", stats.path);
}

#[test]
fn a_subtask_that_is_busy_for_longer_than_the_timeout_loses_nothing() {
    let workers = Workers::with(EndpointOptions {
        data_idle_timeout: Duration::from_millis(400),
        ..EndpointOptions::default()
    });
    let sides = workers.job();
    let (mut senders, mut receivers) = conformance::open(&sides, 1, BUDGET);
    (0..4).for_each(|i| senders[0].sends(batch(i, 1000)));
    std::thread::sleep(Duration::from_millis(1200));
    (0..4).for_each(|i| receivers[0].receives(&format!("batch {i}")));
    senders[0].sends(batch(4, 1));
    receivers[0].receives("batch 4");
}

#[test]
fn senders_that_go_before_their_channel_is_open_leave_nothing() {
    let workers = Workers::new();
    let execution = ExecutionKey { job: 1, attempt: 0 };
    for _ in 0..20 {
        let sending = workers.transport(&workers.sending, execution);
        let mut sender = conformance::sender(&sending, ID, Duration::from_millis(2));
        sender.waits_with(batch(0, 1));
    }
    let deadline = Instant::now() + Duration::from_secs(5);
    // The endpoint is held by its handle alone again.
    while Arc::strong_count(workers.sending.inner()) > 1 {
        assert!(Instant::now() < deadline, "{}", Arc::strong_count(workers.sending.inner()));
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_was_sent_arrives_though_the_attempt_is_over_at_the_sender() {
    let workers = Workers::new();
    let sides = workers.job();
    let (mut senders, mut receivers) = conformance::open(&sides, 1, GateBudget::default());
    (0..8).for_each(|i| senders[0].sends(batch(i, 2000)));
    senders[0].sends(millstream_types::StreamElement::EndOfInput);
    drop((senders, sides.sending));
    (0..8).for_each(|i| receivers[0].receives(&format!("batch {i}")));
    receivers[0].receives("end");
}

fn connection(workers: &Workers) -> quinn::Connection {
    let found = workers.sending.inner().connections().connection(workers.receiving.node());
    found.expect("they have spoken to each other")
}

fn bytes_sent(workers: &Workers) -> u64 {
    connection(workers).stats().udp_tx.bytes
}
