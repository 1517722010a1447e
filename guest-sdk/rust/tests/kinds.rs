//! Functions of every kind, as a user writes them.
use millstream::function::Module;
use millstream::{
    Collector, Function, Input, ListState, MapState, Output, ProcessContext, State, Timer, Timestamp,
    ValueState, Window,
};

#[derive(Input)]
struct Bid<'a> {
    channel: &'a str,
    price: i64,
}

#[derive(Output, Debug, PartialEq)]
struct Count<'a> {
    auction: i64,
    channel: &'a str,
    count: i64,
}

#[derive(Function)]
struct Counts {
    count: ValueState<i64>,
    prices: ListState<i64>,
    channels: MapState<String, i64>,
    #[parameter(default = 10)]
    wait: i64,
}

/// Counts.
#[millstream::process]
impl Counts {
    fn process(
        &mut self,
        auction: i64,
        bid: Bid<'_>,
        ctx: &mut ProcessContext,
        out: &mut Collector<Count<'_>>,
    ) {
        let count = self.count.get_or_insert_with(|| 0);
        *count += 1;
        let count = *count;
        self.prices.add(bid.price);
        self.channels.insert(&bid.channel.to_owned(), bid.price);
        ctx.set_timer(self.wait);
        out.emit(Count { auction, channel: bid.channel, count });
    }

    fn on_timer(&mut self, auction: i64, _timer: Timer, total: &mut Collector<(i64, i64)>) {
        total.emit((auction, self.prices.take().iter().sum::<i64>()));
    }
}

#[derive(State, Default)]
struct Stats {
    count: i64,
    sum: i64,
}

#[derive(Function)]
struct Mean {}

#[millstream::aggregate]
impl Mean {
    fn accumulate(&self, stats: &mut Stats, bid: Bid<'_>) {
        stats.count += 1;
        stats.sum += bid.price;
    }
    fn merge(&self, into: &mut Stats, other: Stats) {
        into.count += other.count;
        into.sum += other.sum;
    }
    fn finish(&self, stats: &Stats, _key: &str, _window: Window) -> i64 {
        stats.sum / stats.count
    }
}

#[derive(Input)]
struct Leg {
    time: Timestamp,
}

#[millstream::window]
fn first(_plane: &str, _window: Window, legs: &[Leg]) -> Option<Timestamp> {
    legs.iter().map(|leg| leg.time).min()
}

millstream::module! { name: "kinds", doc: "All kinds.", functions: [Counts, Mean, first] }

#[test]
fn describes() {
    println!("{}", MillstreamModule::describe());
}
