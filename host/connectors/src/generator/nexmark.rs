//! `bench-nexmark`: the events of an auction site. Of fifty in a row the first is a new person, the next three are new
//! auctions, the others are bids; each kind has an output port of its own.
//!
//! Text comes out of small pools that are made once; batches refer to it.

use std::{iter, sync::Arc};

use arrow_array::{Array, ArrayRef, Int64Array, StringViewArray, TimestampMillisecondArray, UInt32Array};
use arrow_buffer::ScalarBuffer;
use arrow_select::take::take;
use millstream_types::{Batch, DataType, Field, Schema};

use super::{EventTimes, Generate, Kind, Numbers};
use crate::mix::{below, mix};

/// Ports `bid`, `auction` and `person`; the column `ts` of each is also the rows' event time.
pub(crate) struct Nexmark {
    schemas: [Schema; 3],
    pools: Arc<Pools>,
    events_per_second: u64,
}

impl Nexmark {
    /// So many events to a second of event time.
    pub(crate) fn new(events_per_second: u64) -> Self {
        use DataType::{Int64, Timestamp, Utf8};
        let schema = |columns: &[(&str, DataType)]| {
            Schema::new(
                columns.iter().map(|(name, data_type)| Field::new(*name, *data_type)).collect::<Vec<_>>(),
            )
        };
        let person = [
            ("id", Int64),
            ("name", Utf8),
            ("email", Utf8),
            ("card", Utf8),
            ("city", Utf8),
            ("state", Utf8),
            ("ts", Timestamp),
            ("extra", Utf8),
        ];
        let auction = [
            ("id", Int64),
            ("item", Utf8),
            ("description", Utf8),
            ("initial_bid", Int64),
            ("reserve", Int64),
            ("ts", Timestamp),
            ("expires", Timestamp),
            ("seller", Int64),
            ("category", Int64),
            ("extra", Utf8),
        ];
        let bid = [
            ("auction", Int64),
            ("bidder", Int64),
            ("price", Int64),
            ("channel", Utf8),
            ("url", Utf8),
            ("ts", Timestamp),
            ("extra", Utf8),
        ];
        let schemas = [schema(&bid), schema(&auction), schema(&person)];
        Self { schemas, pools: Arc::new(Pools::new()), events_per_second }
    }
}

impl Kind for Nexmark {
    fn outputs(&self) -> Vec<(String, Schema)> {
        let names = ["bid", "auction", "person"].map(str::to_owned);
        names.into_iter().zip(self.schemas.clone()).collect()
    }

    fn generator(&self) -> Box<dyn Generate> {
        Box::new(Events {
            schemas: self.schemas.clone(),
            pools: self.pools.clone(),
            events_per_second: self.events_per_second,
        })
    }
}

/// The texts and prices that events are made of.
struct Pools {
    name: ArrayRef,
    email: ArrayRef,
    card: ArrayRef,
    city: ArrayRef,
    person_extra: ArrayRef,
    item: ArrayRef,
    description: ArrayRef,
    auction_extra: ArrayRef,
    url: ArrayRef,
    bid_extra: ArrayRef,
    state: ArrayRef,
    channel: ArrayRef,
    price: Vec<i64>,
}

impl Pools {
    fn new() -> Self {
        let given = |texts: &[&str]| Arc::new(StringViewArray::from_iter_values(texts)) as ArrayRef;
        Self {
            name: texts(1, 14),
            email: texts(2, 20),
            card: texts(3, 19),
            city: texts(4, 10),
            person_extra: texts(5, 100),
            item: texts(6, 20),
            description: texts(7, 100),
            auction_extra: texts(8, 310),
            url: texts(9, 30),
            bid_extra: texts(10, 30),
            state: given(&["AZ", "CA", "ID", "OR", "WA", "WY"]),
            channel: given(&["Google", "Facebook", "Baidu", "Apple"]),
            price: (0..4096)
                .map(|k| (100.0 * 10_f64.powf(f64::from(6 * k) / 4096.0)).floor() as i64)
                .collect(),
        }
    }
}

/// 256 texts of lower case letters.
fn texts(seed: u64, length: usize) -> ArrayRef {
    let text = |i: u64| {
        let letters = iter::successors(Some(mix(mix(seed * 256 + i))), |r| Some(mix(*r)));
        letters.take(length).map(|r| char::from(b'a' + below(r, 26) as u8)).collect::<String>()
    };
    Arc::new(StringViewArray::from_iter_values((0..256).map(text)))
}

struct Events {
    schemas: [Schema; 3],
    pools: Arc<Pools>,
    events_per_second: u64,
}

impl Generate for Events {
    fn generate(&mut self, numbers: &Numbers) -> Vec<(usize, Batch)> {
        let (mut bids, mut auctions, mut persons) =
            (Bids::for_rows(numbers.count), Auctions::default(), Persons::default());
        let mut times = EventTimes::new(numbers, self.events_per_second);
        let mut position = Position::of(numbers.first);
        for i in numbers.iter() {
            let (r, ts) = (mix(i), times.next());
            match position.offset {
                0 => persons.push(&position, r, ts),
                1..4 => auctions.push(&position, r, ts, &self.pools),
                _ => bids.push(&position, r, ts, &self.pools),
            }
            position.advance(numbers.stride);
        }
        let [bid, auction, person] = &self.schemas;
        let batches = [
            bids.batch(bid, &self.pools),
            auctions.batch(auction, &self.pools),
            persons.batch(person, &self.pools),
        ];
        batches.into_iter().enumerate().filter(|(_, batch)| !batch.is_empty()).collect()
    }
}

/// Which fifty events one is in, and where in them; without a division for each event.
struct Position {
    offset: u64,
    epoch: Epoch,
}

/// What the events of fifty in a row have in common: who and what is there to choose from.
struct Epoch {
    number: u64,
    hot_person: u64,
    first_person: u64,
    persons: u64,
    hot_auction: u64,
    first_auction: u64,
    auctions: u64,
}

/// Events from one person to the next.
const EPOCH: u64 = 50;
/// The number of the first person and of the first auction.
const FIRST: u64 = 1000;

impl Epoch {
    /// One of the last thousand persons or of the last hundred auctions; every hundredth of either is hot for a time.
    fn new(number: u64) -> Self {
        let last = number * 3 + 2;
        let (persons, auctions) = ((number + 1).min(1000), (last + 1).min(100));
        Self {
            number,
            hot_person: FIRST + number / 100 * 100,
            first_person: FIRST + number + 1 - persons,
            persons,
            hot_auction: FIRST + last / 100 * 100,
            first_auction: FIRST + last + 1 - auctions,
            auctions,
        }
    }
}

impl Position {
    fn of(event: u64) -> Self {
        Self { offset: event % EPOCH, epoch: Epoch::new(event / EPOCH) }
    }

    #[inline]
    fn advance(&mut self, stride: u64) {
        self.offset += stride;
        if self.offset >= EPOCH {
            self.epoch = Epoch::new(self.epoch.number + self.offset / EPOCH);
            self.offset %= EPOCH;
        }
    }

    /// The person whose turn it is among sellers or bidders: three of four times the hot one. Both are computed, as
    /// no processor guesses which it is.
    #[inline]
    fn person(&self, r: u64, hot: u64, random: u64) -> i64 {
        let (hot, other) =
            (self.epoch.hot_person + hot, self.epoch.first_person + below(random, self.epoch.persons));
        select((r >> 9) & 3 != 0, hot, other) as i64
    }

    /// The auction that gets a bid: every second time the hot one.
    #[inline]
    fn auction(&self, r: u64, random: u64) -> i64 {
        let other = self.epoch.first_auction + below(random, self.epoch.auctions);
        select((r >> 8) & 1 == 0, self.epoch.hot_auction, other) as i64
    }
}

/// One of two without a branch.
#[inline]
fn select(first: bool, a: u64, b: u64) -> u64 {
    let mask = u64::from(first).wrapping_neg();
    (a & mask) | (b & !mask)
}

/// Which of 256 texts.
fn pick(r: u64) -> u32 {
    (r & 255) as u32
}

fn price(r: u64, pools: &Pools) -> i64 {
    pools.price[(r >> 16 & 4095) as usize]
}

struct Bids {
    auction: Vec<i64>,
    bidder: Vec<i64>,
    price: Vec<i64>,
    channel: Vec<u32>,
    text: Vec<u32>,
    ts: Vec<i64>,
}

impl Bids {
    fn for_rows(rows: usize) -> Self {
        let numbers = || Vec::with_capacity(rows);
        let picks = || Vec::with_capacity(rows);
        Self {
            auction: numbers(),
            bidder: numbers(),
            price: numbers(),
            channel: picks(),
            text: picks(),
            ts: numbers(),
        }
    }

    #[inline]
    fn push(&mut self, position: &Position, r: u64, ts: i64, pools: &Pools) {
        let random = mix(r);
        self.auction.push(position.auction(r, random));
        self.bidder.push(position.person(r, 1, random << 32));
        self.price.push(price(r, pools));
        self.channel.push((r >> 12 & 3) as u32);
        self.text.push(pick(r));
        self.ts.push(ts);
    }

    fn batch(self, schema: &Schema, pools: &Pools) -> Batch {
        let text = UInt32Array::from(self.text);
        let ts = ScalarBuffer::from(self.ts);
        let columns = vec![
            integers(self.auction),
            integers(self.bidder),
            integers(self.price),
            picked(&pools.channel, &UInt32Array::from(self.channel)),
            picked(&pools.url, &text),
            timestamps(ts.clone()),
            picked(&pools.bid_extra, &text),
        ];
        Batch::new(schema, columns, ts).expect("the columns of a bid")
    }
}

#[derive(Default)]
struct Auctions {
    id: Vec<i64>,
    initial_bid: Vec<i64>,
    text: Vec<u32>,
    ts: Vec<i64>,
    seller: Vec<i64>,
    category: Vec<i64>,
}

impl Auctions {
    fn push(&mut self, position: &Position, r: u64, ts: i64, pools: &Pools) {
        self.id.push((FIRST + position.epoch.number * 3 + position.offset - 1) as i64);
        self.initial_bid.push(price(r, pools));
        self.text.push(pick(r));
        self.ts.push(ts);
        self.seller.push(position.person(r, 0, mix(r)));
        self.category.push(10 + below(r, 5) as i64);
    }

    fn batch(self, schema: &Schema, pools: &Pools) -> Batch {
        let text = UInt32Array::from(self.text);
        let reserve = self.initial_bid.iter().map(|bid| bid * 2).collect();
        let expires = self.ts.iter().map(|ts| ts + 10_000).collect::<ScalarBuffer<i64>>();
        let ts = ScalarBuffer::from(self.ts);
        let columns = vec![
            integers(self.id),
            picked(&pools.item, &text),
            picked(&pools.description, &text),
            integers(self.initial_bid),
            integers(reserve),
            timestamps(ts.clone()),
            timestamps(expires),
            integers(self.seller),
            integers(self.category),
            picked(&pools.auction_extra, &text),
        ];
        Batch::new(schema, columns, ts).expect("the columns of an auction")
    }
}

#[derive(Default)]
struct Persons {
    id: Vec<i64>,
    text: Vec<u32>,
    state: Vec<u32>,
    ts: Vec<i64>,
}

impl Persons {
    fn push(&mut self, position: &Position, r: u64, ts: i64) {
        self.id.push((FIRST + position.epoch.number) as i64);
        self.text.push(pick(r));
        self.state.push(below(r, 6) as u32);
        self.ts.push(ts);
    }

    fn batch(self, schema: &Schema, pools: &Pools) -> Batch {
        let text = UInt32Array::from(self.text);
        let ts = ScalarBuffer::from(self.ts);
        let columns = vec![
            integers(self.id),
            picked(&pools.name, &text),
            picked(&pools.email, &text),
            picked(&pools.card, &text),
            picked(&pools.city, &text),
            picked(&pools.state, &UInt32Array::from(self.state)),
            timestamps(ts.clone()),
            picked(&pools.person_extra, &text),
        ];
        Batch::new(schema, columns, ts).expect("the columns of a person")
    }
}

fn integers(values: Vec<i64>) -> ArrayRef {
    Arc::new(Int64Array::from(values))
}

fn timestamps(values: ScalarBuffer<i64>) -> ArrayRef {
    Arc::new(TimestampMillisecondArray::new(values, None).with_timezone("UTC"))
}

/// Views of pooled text: sixteen bytes a value, whatever its length.
fn picked(pool: &ArrayRef, picks: &UInt32Array) -> ArrayRef {
    debug_assert!(
        picks.values().iter().all(|pick| (*pick as usize) < pool.len()),
        "a pick outside of the pool"
    );
    take(pool, picks, None).expect("every pick is in the pool")
}
