//! What every transport has to do, as tests that each implementation runs.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use arrow_array::{Int64Array, RecordBatch};
use millstream_types::{Alignment, Barrier, BarrierKind, Batch, DataType, Field, Schema, StreamElement};

use crate::{Ahead, ChannelId, ChannelReceiver, ChannelSender, Disconnected, GateBudget, Transport};

/// Runs all checks against fresh transports.
pub(crate) fn run<T: Transport + 'static>(make: impl Fn() -> T) {
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
    two_threads_lose_nothing(make());
    for _ in 0..500 {
        a_receiver_that_goes_in_the_middle_ends_the_sender(make());
    }
}

const BUDGET: GateBudget = GateBudget { exclusive: 2, floating: 2, elements: 64 };

fn order_is_kept(transport: &dyn Transport) {
    let (mut sender, mut receiver) = open(transport, 1, BUDGET);
    for i in 0..4 {
        assert!(send(&mut *sender[0], batch(i, 1)));
        assert!(send(&mut *sender[0], StreamElement::Watermark(i)));
    }
    for i in 0..4 {
        assert_eq!(receive(&mut *receiver[0]), Some(format!("batch {i}")));
        assert_eq!(receive(&mut *receiver[0]), Some(format!("watermark {i}")));
    }
    assert_eq!(receive(&mut *receiver[0]), None);
}

fn data_waits_for_credit_and_events_do_not(transport: &dyn Transport) {
    let (mut sender, mut receiver) = open(transport, 1, BUDGET);
    let sent = (0..10).take_while(|&i| send(&mut *sender[0], batch(i, 1))).count();
    assert_eq!(sent, 4, "two exclusive and two floating credits");
    assert!(send(&mut *sender[0], StreamElement::Idle), "an event needs no credit");
    assert_eq!(receive(&mut *receiver[0]), Some("batch 0".into()));
    assert!(!send(&mut *sender[0], batch(4, 1)), "what is being worked on still holds its credit");
    assert_eq!(receive(&mut *receiver[0]), Some("batch 1".into()));
    assert!(send(&mut *sender[0], batch(4, 1)));
}

fn floating_credits_go_where_they_are_needed(transport: &dyn Transport) {
    let (mut sender, mut receiver) = open(transport, 2, BUDGET);
    assert_eq!((0..10).take_while(|&i| send(&mut *sender[0], batch(i, 1))).count(), 4);
    assert_eq!((0..10).take_while(|&i| send(&mut *sender[1], batch(i, 1))).count(), 2);
    for _ in 0..3 {
        assert!(receive(&mut *receiver[0]).is_some());
    }
    assert_eq!(
        (0..10).take_while(|&i| send(&mut *sender[1], batch(i, 1))).count(),
        2,
        "the first gave two back"
    );
}

fn a_large_batch_goes_alone(transport: &dyn Transport) {
    let (mut sender, mut receiver) = open(transport, 1, BUDGET);
    assert!(send(&mut *sender[0], batch(0, 100_000)));
    assert!(!send(&mut *sender[0], batch(1, 1)));
    assert!(receive(&mut *receiver[0]).is_some() && receive(&mut *receiver[0]).is_none());
    assert!(send(&mut *sender[0], batch(1, 1)));
    assert!(!send(&mut *sender[0], batch(2, 100_000)));
}

fn barriers_find_room_and_keep_their_place(transport: &dyn Transport) {
    let (mut sender, mut receiver) = open(transport, 1, GateBudget { elements: 3, ..BUDGET });
    assert_eq!((0..9).take_while(|_| send(&mut *sender[0], StreamElement::Idle)).count(), 3);
    for id in 1..9 {
        assert!(send(&mut *sender[0], barrier(id)), "barrier {id} needs no place");
    }
    for _ in 0..3 {
        assert_eq!(receive(&mut *receiver[0]), Some("Idle".into()));
    }
    assert!(send(&mut *sender[0], StreamElement::Idle));
    assert!(send(&mut *sender[0], barrier(9)));
    for id in 1..9 {
        assert_eq!(receive(&mut *receiver[0]), Some(format!("barrier {id}")));
    }
    assert_eq!(receive(&mut *receiver[0]), Some("Idle".into()));
    assert_eq!(receive(&mut *receiver[0]), Some("barrier 9".into()));
    assert_eq!(receive(&mut *receiver[0]), None);
}

fn a_barrier_can_be_taken_before_its_turn(transport: &dyn Transport) {
    let (mut sender, mut receiver) = open(transport, 1, BUDGET);
    let mut context = Context::from_waker(Waker::noop());
    assert!(receiver[0].poll_ahead(&mut context).is_pending());
    receiver[0].overtake();
    assert!((0..2).all(|i| send(&mut *sender[0], batch(i, 1))));
    assert!(send(&mut *sender[0], StreamElement::Watermark(7)));
    assert!(receiver[0].poll_ahead(&mut context).is_pending() && receiver[0].ahead().is_empty());
    assert!(send(&mut *sender[0], barrier(1)) && send(&mut *sender[0], batch(2, 1)));
    assert!(send(&mut *sender[0], barrier(2)) && send(&mut *sender[0], batch(3, 1)));
    assert_eq!(receive(&mut *receiver[0]), Some("batch 0".into()));
    assert_eq!(ahead(&mut *receiver[0]), (Some(1), vec!["batch 1".to_owned(), "watermark 7".into()]));
    receiver[0].overtake();
    let (next, before) = ahead(&mut *receiver[0]);
    assert_eq!((next, before.len()), (Some(2), 3), "{before:?}");
    for expected in ["batch 1", "watermark 7", "batch 2", "barrier 2", "batch 3"] {
        assert_eq!(receive(&mut *receiver[0]), Some(expected.into()), "in order, and barrier 1 is gone");
    }
    assert!(receive(&mut *receiver[0]).is_none() && receiver[0].poll_ahead(&mut context).is_pending());
    assert_eq!((4..9).take_while(|&i| send(&mut *sender[0], batch(i, 1))).count(), 4, "all credit is back");
}

fn the_end_can_be_seen_before_its_turn(transport: &dyn Transport) {
    let (mut sender, mut receiver) = open(transport, 1, BUDGET);
    assert!(send(&mut *sender[0], batch(0, 1)) && send(&mut *sender[0], StreamElement::EndOfInput));
    drop(sender);
    assert_eq!(ahead(&mut *receiver[0]), (None, vec!["batch 0".to_owned()]));
    receiver[0].overtake();
    assert_eq!(receive(&mut *receiver[0]), Some("batch 0".into()));
    assert_eq!(receive(&mut *receiver[0]), Some("end".into()), "it comes in its turn all the same");
}

fn ends_are_opened_once(transport: &dyn Transport) {
    let id = ChannelId { edge: 7, from: 0, to: 0 };
    let _first = transport.sender(id).expect("new");
    assert!(transport.sender(id).is_err(), "{id} was opened twice");
}

fn what_was_sent_arrives_before_the_end_is_noticed(transport: &dyn Transport) {
    let (mut sender, mut receiver) = open(transport, 1, BUDGET);
    assert!(send(&mut *sender[0], StreamElement::EndOfInput));
    drop(sender);
    assert_eq!(receive(&mut *receiver[0]), Some("end".into()));
    let gone = receiver[0].poll_receive(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(gone, Poll::Ready(Err(_))));
}

fn a_receiver_that_goes_ends_the_sender(transport: &dyn Transport) {
    let (mut sender, receiver) = open(transport, 1, BUDGET);
    assert!(send(&mut *sender[0], batch(0, 1)));
    drop(receiver);
    let sent = sender[0].poll_send(&mut Context::from_waker(Waker::noop()), &mut Some(batch(1, 1).into()));
    assert!(matches!(sent, Poll::Ready(Err(_))));
}

fn two_threads_lose_nothing<T: Transport + 'static>(transport: T) {
    const BATCHES: i64 = 20_000;
    let transport = Arc::new(transport);
    let sending = transport.clone();
    let id = |from| ChannelId { edge: 0, from, to: 0 };
    let feed = move |from| {
        let mut sender = sending.sender(id(from)).expect("new");
        block_on(async {
            for i in 0..BATCHES {
                deliver(&mut *sender, batch(i, 1)).await.expect("the receiver waits");
            }
        });
    };
    let threads = [0, 1].map(|from| {
        std::thread::spawn({
            let feed = feed.clone();
            move || feed(from)
        })
    });
    let mut gate =
        transport.gate(&[id(0), id(1)], GateBudget { exclusive: 1, floating: 1, elements: 4 }).expect("new");
    for receiver in &mut gate {
        for i in 0..BATCHES {
            let element = block_on(poll_fn(|cx| receiver.poll_receive(cx))).expect("not before the end");
            assert_eq!(show(&element), format!("batch {i}"));
        }
    }
    threads.into_iter().for_each(|t| t.join().expect("no panic"));
}

fn a_receiver_that_goes_in_the_middle_ends_the_sender<T: Transport + 'static>(transport: T) {
    let transport = Arc::new(transport);
    let id = ChannelId { edge: 0, from: 0, to: 0 };
    let budget = GateBudget { exclusive: 1, floating: 0, elements: 4 };
    let mut gate = transport.gate(&[id], budget).expect("new");
    let feed = std::thread::spawn(move || {
        let mut sender = transport.sender(id).expect("new");
        // Ends only when the receiver's end is noticed, with credit left or without.
        block_on(async { while deliver(&mut *sender, batch(0, 1)).await.is_ok() {} });
    });
    for _ in 0..3 {
        block_on(poll_fn(|cx| gate[0].poll_receive(cx))).expect("the sender goes on");
    }
    drop(gate);
    feed.join().expect("no panic");
}

type Ends = (Vec<Box<dyn ChannelSender>>, Vec<Box<dyn ChannelReceiver>>);

fn open(transport: &dyn Transport, channels: u32, budget: GateBudget) -> Ends {
    let ids: Vec<_> = (0..channels).map(|from| ChannelId { edge: 0, from, to: 0 }).collect();
    let gate = transport.gate(&ids, budget).expect("new");
    (ids.iter().map(|&id| transport.sender(id).expect("new")).collect(), gate)
}

/// Whether the element went out without waiting.
fn send(sender: &mut dyn ChannelSender, element: StreamElement) -> bool {
    let mut element = Some(element.into());
    let sent = sender.poll_send(&mut Context::from_waker(Waker::noop()), &mut element);
    assert_eq!(sent.is_ready(), element.is_none(), "what was not sent is still there");
    matches!(sent, Poll::Ready(Ok(())))
}

async fn deliver(sender: &mut dyn ChannelSender, element: StreamElement) -> Result<(), Disconnected> {
    let mut element = Some(element.into());
    poll_fn(|cx| sender.poll_send(cx, &mut element)).await
}

/// The next barrier, none at the end, and what is ahead of it.
fn ahead(receiver: &mut dyn ChannelReceiver) -> (Option<u64>, Vec<String>) {
    let Poll::Ready(next) = receiver.poll_ahead(&mut Context::from_waker(Waker::noop())) else {
        panic!("nothing is ahead")
    };
    let id = match next {
        Ahead::Barrier(barrier) => Some(barrier.id),
        Ahead::End => None,
    };
    (id, receiver.ahead().iter().map(show).collect())
}

fn receive(receiver: &mut dyn ChannelReceiver) -> Option<String> {
    match receiver.poll_receive(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(element)) => Some(show(&element)),
        Poll::Ready(Err(_)) | Poll::Pending => None,
    }
}

fn show(element: &StreamElement) -> String {
    match element {
        StreamElement::Batch(batch) => format!("batch {}", batch.times()[0]),
        StreamElement::Watermark(w) => format!("watermark {w}"),
        StreamElement::EndOfInput => "end".into(),
        StreamElement::Barrier(barrier) => format!("barrier {}", barrier.id),
        other => format!("{other:?}"),
    }
}

fn barrier(id: u64) -> StreamElement {
    let (kind, alignment) = (BarrierKind::Checkpoint, Alignment::Unaligned);
    StreamElement::Barrier(Barrier { id, kind, alignment, triggered: 0, stop: false, base: None })
}

/// `rows` rows that all have the time `time`.
fn batch(time: i64, rows: usize) -> StreamElement {
    let schema = Schema::new(vec![Field::new("x", DataType::Int64)]);
    let column = Arc::new(Int64Array::from(vec![time; rows]));
    let records = RecordBatch::try_new(schema.arrow().clone(), vec![column]).expect("fits");
    StreamElement::Batch(
        Batch::without_times(records).with_times(vec![time; rows].into()).expect("one a row"),
    )
}

fn block_on<F: Future>(future: F) -> F::Output {
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
