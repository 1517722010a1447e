//! What every transport has to do, as tests that each implementation runs.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use arrow_array::{Int64Array, RecordBatch};
use millstream_types::{Batch, DataType, Field, Schema, StreamElement};

use crate::{ChannelId, ChannelReceiver, ChannelSender, GateBudget, Transport};

/// Runs all checks against fresh transports.
pub(crate) fn run<T: Transport + 'static>(make: impl Fn() -> T) {
    order_is_kept(&make());
    data_waits_for_credit_and_events_do_not(&make());
    floating_credits_go_where_they_are_needed(&make());
    a_large_batch_goes_alone(&make());
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
    let mut send = sender[0].send(batch(1, 1));
    assert!(matches!(send.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(Err(_))));
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
                sender.send(batch(i, 1)).await.expect("the receiver waits");
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
        block_on(async { while sender.send(batch(0, 1)).await.is_ok() {} });
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
    let mut send = sender.send(element);
    matches!(send.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(Ok(())))
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
        other => format!("{other:?}"),
    }
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
