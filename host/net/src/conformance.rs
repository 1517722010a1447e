//! What every transport has to do, as tests that each implementation runs.
//!
//! What has to happen is waited for; that something does not happen is believed after the implementation's patience.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use arrow_array::{Int64Array, RecordBatch};
use millstream_types::{Alignment, Barrier, BarrierKind, Batch, DataType, Field, Schema, StreamElement};

use crate::{Ahead, ChannelId, ChannelReceiver, ChannelSender, Disconnected, GateBudget, Transport};

/// Where the two ends of all channels of a test are.
pub(crate) struct Sides {
    /// Where senders are opened.
    pub(crate) sending: Arc<dyn Transport>,
    /// Where gates are.
    pub(crate) receiving: Arc<dyn Transport>,
    /// How long to wait for what should not happen.
    pub(crate) patience: Duration,
}

/// Runs all checks, each with transports of its own.
pub(crate) fn run(make: impl Fn() -> Sides) {
    order_is_kept(&make());
    data_waits_for_credit_and_events_do_not(&make());
    floating_credits_go_where_they_are_needed(&make());
    a_large_batch_goes_alone(&make());
    barriers_find_room_and_keep_their_place(&make());
    a_barrier_can_be_taken_before_its_turn(&make());
    the_end_can_be_seen_before_its_turn(&make());
    ends_are_opened_once(&make());
    what_was_sent_arrives_before_the_end_is_noticed(&make());
    a_receiver_that_goes_ends_the_sender(&make());
    credits_of_a_receiver_that_goes_are_for_the_others(&make());
    two_threads_lose_nothing(&make());
    for _ in 0..500 {
        a_receiver_that_goes_in_the_middle_ends_the_sender(&make());
    }
}

/// The rows of all channels.
pub(crate) fn schema() -> Schema {
    Schema::new(vec![Field::new("x", DataType::Int64)])
}

const BUDGET: GateBudget = GateBudget { exclusive: 2, floating: 2, elements: 64 };

fn order_is_kept(sides: &Sides) {
    let (mut sender, mut receiver) = open(sides, 1, BUDGET);
    for i in 0..4 {
        sender[0].sends(batch(i, 1));
        sender[0].sends(StreamElement::Watermark(i));
    }
    for i in 0..4 {
        receiver[0].receives(&format!("batch {i}"));
        receiver[0].receives(&format!("watermark {i}"));
    }
    receiver[0].receives_nothing();
}

fn data_waits_for_credit_and_events_do_not(sides: &Sides) {
    let (mut sender, mut receiver) = open(sides, 1, BUDGET);
    (0..4).for_each(|i| sender[0].sends(batch(i, 1)));
    sender[0].waits_with(batch(4, 1));
    sender[0].sends(StreamElement::Idle);
    receiver[0].receives("batch 0");
    // What is being worked on still holds its credit.
    sender[0].waits_with(batch(4, 1));
    receiver[0].receives("batch 1");
    sender[0].sends(batch(4, 1));
    for expected in ["batch 2", "batch 3", "Idle", "batch 4"] {
        receiver[0].receives(expected);
    }
}

fn floating_credits_go_where_they_are_needed(sides: &Sides) {
    let (mut sender, mut receiver) = open(sides, 2, BUDGET);
    (0..4).for_each(|i| sender[0].sends(batch(i, 1)));
    (0..2).for_each(|i| sender[1].sends(batch(i, 1)));
    sender[1].waits_with(batch(2, 1));
    (0..3).for_each(|i| receiver[0].receives(&format!("batch {i}")));
    // The first has given two back.
    (2..4).for_each(|i| sender[1].sends(batch(i, 1)));
    sender[1].waits_with(batch(4, 1));
}

fn a_large_batch_goes_alone(sides: &Sides) {
    let (mut sender, mut receiver) = open(sides, 1, BUDGET);
    sender[0].sends(batch(0, 100_000));
    sender[0].waits_with(batch(1, 1));
    receiver[0].receives("batch 0");
    receiver[0].receives_nothing();
    sender[0].sends(batch(1, 1));
    sender[0].waits_with(batch(2, 100_000));
    receiver[0].receives("batch 1");
    receiver[0].receives_nothing();
    sender[0].sends(batch(2, 100_000));
}

fn barriers_find_room_and_keep_their_place(sides: &Sides) {
    let (mut sender, mut receiver) = open(sides, 1, GateBudget { elements: 3, ..BUDGET });
    (0..3).for_each(|_| sender[0].sends(StreamElement::Idle));
    sender[0].waits_with(StreamElement::Idle);
    (1..9).for_each(|id| sender[0].sends(barrier(id)));
    (0..3).for_each(|_| receiver[0].receives("Idle"));
    sender[0].sends(StreamElement::Idle);
    sender[0].sends(barrier(9));
    (1..9).for_each(|id| receiver[0].receives(&format!("barrier {id}")));
    receiver[0].receives("Idle");
    receiver[0].receives("barrier 9");
    receiver[0].receives_nothing();
}

fn a_barrier_can_be_taken_before_its_turn(sides: &Sides) {
    let (mut sender, mut receiver) = open(sides, 1, BUDGET);
    receiver[0].sees_nothing_ahead();
    receiver[0].end.overtake();
    (0..2).for_each(|i| sender[0].sends(batch(i, 1)));
    sender[0].sends(StreamElement::Watermark(7));
    receiver[0].sees_nothing_ahead();
    assert!(receiver[0].end.ahead().is_empty());
    let rest = [barrier(1), batch(2, 1), barrier(2), batch(3, 1)];
    rest.into_iter().for_each(|element| sender[0].sends(element));
    receiver[0].receives("batch 0");
    assert_eq!(receiver[0].ahead(), (Some(1), vec!["batch 1".to_owned(), "watermark 7".into()]));
    receiver[0].end.overtake();
    let (next, before) = receiver[0].ahead();
    assert_eq!((next, before.len()), (Some(2), 3), "{before:?}");
    // In order, and barrier 1 is gone.
    for expected in ["batch 1", "watermark 7", "batch 2", "barrier 2", "batch 3"] {
        receiver[0].receives(expected);
    }
    receiver[0].receives_nothing();
    receiver[0].sees_nothing_ahead();
    // All credit is back.
    (4..8).for_each(|i| sender[0].sends(batch(i, 1)));
    sender[0].waits_with(batch(8, 1));
}

fn the_end_can_be_seen_before_its_turn(sides: &Sides) {
    let (mut sender, mut receiver) = open(sides, 1, BUDGET);
    sender[0].sends(batch(0, 1));
    sender[0].sends(StreamElement::EndOfInput);
    drop(sender);
    assert_eq!(receiver[0].ahead(), (None, vec!["batch 0".to_owned()]));
    receiver[0].end.overtake();
    receiver[0].receives("batch 0");
    // It comes in its turn all the same.
    receiver[0].receives("end");
}

fn ends_are_opened_once(sides: &Sides) {
    let id = ChannelId { edge: 7, from: 0, to: 0 };
    let _first = sides.sending.sender(id).expect("new");
    assert!(sides.sending.sender(id).is_err(), "{id} was opened twice");
}

fn what_was_sent_arrives_before_the_end_is_noticed(sides: &Sides) {
    let (mut sender, mut receiver) = open(sides, 1, BUDGET);
    sender[0].sends(StreamElement::EndOfInput);
    drop(sender);
    receiver[0].receives("end");
    assert_eq!(receiver[0].ends(), Disconnected::new(receiver[0].id));
}

fn a_receiver_that_goes_ends_the_sender(sides: &Sides) {
    let (mut sender, receiver) = open(sides, 1, BUDGET);
    sender[0].sends(batch(0, 1));
    drop(receiver);
    assert_eq!(sender[0].ends(), Disconnected::new(sender[0].id));
}

fn credits_of_a_receiver_that_goes_are_for_the_others(sides: &Sides) {
    let (mut sender, mut receiver) = open(sides, 2, BUDGET);
    (0..4).for_each(|i| sender[0].sends(batch(i, 1)));
    receiver[0].receives("batch 0");
    drop(receiver.remove(0));
    (0..4).for_each(|i| sender[1].sends(batch(i, 1)));
    sender[1].waits_with(batch(4, 1));
}

fn two_threads_lose_nothing(sides: &Sides) {
    const BATCHES: i64 = 20_000;
    let id = |from| ChannelId { edge: 0, from, to: 0 };
    let threads = [0, 1].map(|from| {
        let sending = sides.sending.clone();
        std::thread::spawn(move || {
            let mut sender = sending.sender(id(from)).expect("new");
            block_on(async {
                for i in 0..BATCHES {
                    deliver(&mut *sender, batch(i, 1)).await.expect("the receiver waits");
                }
            });
        })
    });
    let budget = GateBudget { exclusive: 1, floating: 1, elements: 4 };
    let mut gate = sides.receiving.gate(&[id(0), id(1)], budget).expect("new");
    for receiver in &mut gate {
        for i in 0..BATCHES {
            let element = block_on(poll_fn(|cx| receiver.poll_receive(cx))).expect("not before the end");
            assert_eq!(show(&element), format!("batch {i}"));
        }
    }
    threads.into_iter().for_each(|t| t.join().expect("no panic"));
}

fn a_receiver_that_goes_in_the_middle_ends_the_sender(sides: &Sides) {
    let id = ChannelId { edge: 0, from: 0, to: 0 };
    let budget = GateBudget { exclusive: 1, floating: 0, elements: 4 };
    let mut gate = sides.receiving.gate(&[id], budget).expect("new");
    let sending = sides.sending.clone();
    let feed = std::thread::spawn(move || {
        let mut sender = sending.sender(id).expect("new");
        // Ends only when the receiver's end is noticed, with credit left or without.
        block_on(async { while deliver(&mut *sender, batch(0, 1)).await.is_ok() {} });
    });
    for _ in 0..3 {
        block_on(poll_fn(|cx| gate[0].poll_receive(cx))).expect("the sender goes on");
    }
    drop(gate);
    feed.join().expect("no panic");
}

/// A sending end with what is expected of it.
pub(crate) struct Sender {
    id: ChannelId,
    end: Box<dyn ChannelSender>,
    patience: Duration,
}

/// A receiving end with what is expected of it.
pub(crate) struct Receiver {
    id: ChannelId,
    pub(crate) end: Box<dyn ChannelReceiver>,
    patience: Duration,
}

/// Opens so many channels into one gate.
pub(crate) fn open(sides: &Sides, channels: u32, budget: GateBudget) -> (Vec<Sender>, Vec<Receiver>) {
    let ids: Vec<_> = (0..channels).map(|from| ChannelId { edge: 0, from, to: 0 }).collect();
    let receivers = receivers(sides.receiving.gate(&ids, budget).expect("new"), &ids, sides.patience);
    let sender = |&id: &ChannelId| sender(&*sides.sending, id, sides.patience);
    (ids.iter().map(sender).collect(), receivers)
}

/// The sending end of a channel.
pub(crate) fn sender(transport: &dyn Transport, id: ChannelId, patience: Duration) -> Sender {
    Sender { id, end: transport.sender(id).expect("new"), patience }
}

/// The receiving ends of these channels.
pub(crate) fn receivers(
    gate: Vec<Box<dyn ChannelReceiver>>,
    ids: &[ChannelId],
    patience: Duration,
) -> Vec<Receiver> {
    gate.into_iter().zip(ids).map(|(end, &id)| Receiver { id, end, patience }).collect()
}

impl Sender {
    /// It goes out.
    pub(crate) fn sends(&mut self, element: StreamElement) {
        let what = show(&element);
        let mut element = Some(element.into());
        let sent = within(LONG, || ready(self.poll(&mut element)));
        sent.unwrap_or_else(|| panic!("{what} was not sent")).expect("the receiver is there");
    }

    /// It does not go out, and nothing of it has been sent.
    pub(crate) fn waits_with(&mut self, element: StreamElement) {
        let what = show(&element);
        let mut element = Some(element.into());
        let sent = within(self.patience, || ready(self.poll(&mut element)));
        assert!(sent.is_none(), "{what} was sent: {sent:?}");
    }

    /// Whether it goes out.
    pub(crate) fn would_send(&mut self, element: StreamElement) -> bool {
        let mut element = Some(element.into());
        within(self.patience, || ready(self.poll(&mut element))).is_some()
    }

    /// It comes to know that the receiver has gone.
    pub(crate) fn ends(&mut self) -> Disconnected {
        let gone = within(LONG, || ready(self.poll(&mut Some(batch(0, 1).into()))).and_then(Result::err));
        gone.expect("the receiver has gone")
    }

    fn poll(&mut self, element: &mut Option<crate::Charged>) -> Poll<Result<(), Disconnected>> {
        let sent = self.end.poll_send(&mut Context::from_waker(Waker::noop()), element);
        if !matches!(sent, Poll::Ready(Err(_))) {
            assert_eq!(sent.is_ready(), element.is_none(), "what was not sent is still there");
        }
        sent
    }
}

impl Receiver {
    /// It comes next.
    pub(crate) fn receives(&mut self, expected: &str) {
        let received = within(LONG, || ready(self.poll()));
        let received = received.unwrap_or_else(|| panic!("{expected} did not come"));
        assert_eq!(show(&received.unwrap_or_else(|end| panic!("{expected} did not come: {end}"))), expected);
    }

    /// Nothing comes.
    pub(crate) fn receives_nothing(&mut self) {
        let received = within(self.patience, || ready(self.poll()));
        assert!(received.is_none(), "{received:?}");
    }

    /// All that comes is the end, because the sender has gone.
    pub(crate) fn ends(&mut self) -> Disconnected {
        match within(LONG, || ready(self.poll())) {
            Some(Err(gone)) => gone,
            other => panic!("the sender has gone, and this came: {other:?}"),
        }
    }

    /// The end comes behind whatever else does.
    pub(crate) fn ends_at_last(&mut self) -> Disconnected {
        let end = within(LONG, || ready(self.poll()).and_then(Result::err));
        end.expect("the sender has gone")
    }

    /// The next barrier, none at the end, and what is ahead of it.
    fn ahead(&mut self) -> (Option<u64>, Vec<String>) {
        let next = within(LONG, || ready(self.end.poll_ahead(&mut Context::from_waker(Waker::noop()))));
        let id = match next.expect("something is ahead") {
            Ahead::Barrier(barrier) => Some(barrier.id),
            Ahead::End => None,
        };
        (id, self.end.ahead().iter().map(show).collect())
    }

    fn sees_nothing_ahead(&mut self) {
        let next =
            within(self.patience, || ready(self.end.poll_ahead(&mut Context::from_waker(Waker::noop()))));
        assert_eq!(next, None);
    }

    fn poll(&mut self) -> Poll<Result<StreamElement, Disconnected>> {
        self.end.poll_receive(&mut Context::from_waker(Waker::noop()))
    }
}

async fn deliver(sender: &mut dyn ChannelSender, element: StreamElement) -> Result<(), Disconnected> {
    let mut element = Some(element.into());
    poll_fn(|cx| sender.poll_send(cx, &mut element)).await
}

/// What there is at last; none if there is still nothing after so long.
fn within<T>(limit: Duration, mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    let started = Instant::now();
    loop {
        let found = attempt();
        if found.is_some() || started.elapsed() >= limit {
            return found;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

fn ready<T>(polled: Poll<T>) -> Option<T> {
    match polled {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// How long to wait for what should happen.
const LONG: Duration = Duration::from_secs(20);

fn show(element: &StreamElement) -> String {
    match element {
        StreamElement::Batch(batch) => format!("batch {}", batch.times()[0]),
        StreamElement::Watermark(w) => format!("watermark {w}"),
        StreamElement::EndOfInput => "end".into(),
        StreamElement::Barrier(barrier) => format!("barrier {}", barrier.id),
        other => format!("{other:?}"),
    }
}

pub(crate) fn barrier(id: u64) -> StreamElement {
    let (kind, alignment) = (BarrierKind::Checkpoint, Alignment::Unaligned);
    StreamElement::Barrier(Barrier { id, kind, alignment, triggered: 0, stop: false, base: None })
}

/// `rows` rows that all have the time `time`.
pub(crate) fn batch(time: i64, rows: usize) -> StreamElement {
    let schema = schema();
    let column = Arc::new(Int64Array::from(vec![time; rows]));
    let records = RecordBatch::try_new(schema.arrow().clone(), vec![column]).expect("fits");
    StreamElement::Batch(
        Batch::without_times(records).with_times(vec![time; rows].into()).expect("one a row"),
    )
}

pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let thread = std::thread::current();
    let waker = Waker::from(Arc::new(Unpark(thread)));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

struct Unpark(std::thread::Thread);

impl std::task::Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
