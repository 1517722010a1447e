//! q7: the highest bid of each window, by auction first and then of all.

use millstream::{Function, Input, Output, State, Timestamp};

/// What is read of a bid.
#[derive(Input)]
pub struct Bid {
    /// In cents.
    pub price: i64,
    /// Who bids.
    pub bidder: i64,
    /// When.
    pub ts: Timestamp,
}

/// The highest bid so far.
#[derive(State, Clone, Copy)]
pub struct Highest {
    price: i64,
    bidder: i64,
    ts: Timestamp,
}

impl Highest {
    /// What every bid beats.
    const NONE: Self = Self { price: i64::MIN, bidder: i64::MAX, ts: Timestamp(i64::MAX) };

    /// The higher price wins; of equals the earlier bid, then the smaller bidder.
    fn beats(&self, other: &Self) -> bool {
        let earlier = |bid: &Self| (std::cmp::Reverse(bid.ts), std::cmp::Reverse(bid.bidder));
        (self.price, earlier(self)) > (other.price, earlier(other))
    }
}

/// The highest bid for an auction.
#[derive(Output, Debug, PartialEq)]
pub struct HighestOf {
    /// In cents.
    pub price: i64,
    /// Who bids.
    pub bidder: i64,
    /// When.
    pub ts: Timestamp,
}

/// Finds an auction's highest bid.
#[derive(Function)]
pub struct Q7Max {}

/// The highest bid of a group.
#[millstream::aggregate]
impl Q7Max {
    fn create(&self) -> Highest {
        Highest::NONE
    }

    fn accumulate(&self, highest: &mut Highest, bid: Bid) {
        self.merge(highest, Highest { price: bid.price, bidder: bid.bidder, ts: bid.ts });
    }

    fn merge(&self, into: &mut Highest, other: Highest) {
        if other.beats(into) {
            *into = other;
        }
    }

    fn finish(&self, highest: &Highest) -> HighestOf {
        HighestOf { price: highest.price, bidder: highest.bidder, ts: highest.ts }
    }
}

/// An auction's highest bid.
#[derive(Input)]
pub struct OverallBid {
    /// The auction.
    pub auction: i64,
    /// In cents.
    pub price: i64,
    /// Who bids.
    pub bidder: i64,
    /// When.
    pub ts: Timestamp,
}

/// The highest bid of all auctions so far.
#[derive(State, Clone, Copy)]
pub struct OverallSoFar {
    auction: i64,
    price: i64,
    bidder: i64,
    ts: Timestamp,
}

impl OverallSoFar {
    fn beats(&self, other: &Self) -> bool {
        let (own, others) = (self.highest(), other.highest());
        own.beats(&others) || (!others.beats(&own) && self.auction < other.auction)
    }

    fn highest(&self) -> Highest {
        Highest { price: self.price, bidder: self.bidder, ts: self.ts }
    }
}

/// The highest bid of all auctions.
#[derive(Output, Debug, PartialEq)]
pub struct OverallHighest {
    /// The auction.
    pub auction: i64,
    /// In cents.
    pub price: i64,
    /// Who bids.
    pub bidder: i64,
    /// When.
    pub ts: Timestamp,
}

/// Finds the highest bid of all auctions.
#[derive(Function)]
pub struct Q7Overall {}

/// The highest of the auctions' highest bids.
#[millstream::aggregate]
impl Q7Overall {
    fn create(&self) -> OverallSoFar {
        let Highest { price, bidder, ts } = Highest::NONE;
        OverallSoFar { auction: i64::MAX, price, bidder, ts }
    }

    fn accumulate(&self, highest: &mut OverallSoFar, bid: OverallBid) {
        let OverallBid { auction, price, bidder, ts } = bid;
        self.merge(highest, OverallSoFar { auction, price, bidder, ts });
    }

    fn merge(&self, into: &mut OverallSoFar, other: OverallSoFar) {
        if other.beats(into) {
            *into = other;
        }
    }

    fn finish(&self, highest: &OverallSoFar) -> OverallHighest {
        let OverallSoFar { auction, price, bidder, ts } = *highest;
        OverallHighest { auction, price, bidder, ts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream::testing;

    #[test]
    fn of_equal_prices_the_earlier_then_the_smaller_bidder_wins() {
        let bid = |price, ts, bidder| (1, Bid { price, bidder, ts: Timestamp(ts) });
        let bids = || [bid(5, 1, 1), bid(9, 4, 7), bid(9, 3, 8), bid(9, 3, 6), bid(8, 1, 1)];
        for parts in [1, 3] {
            let results = testing::aggregate::<Q7Max>().merged_from(parts).run(bids());
            assert_eq!(results.rows::<HighestOf>(), [HighestOf { price: 9, bidder: 6, ts: Timestamp(3) }]);
        }
    }

    #[test]
    fn the_highest_of_all_names_its_auction() {
        let bid = |auction, price| ((), OverallBid { auction, price, bidder: 1, ts: Timestamp(1) });
        let results = testing::aggregate::<Q7Overall>().run([bid(4, 7), bid(3, 9), bid(2, 9), bid(5, 1)]);
        let highest = OverallHighest { auction: 2, price: 9, bidder: 1, ts: Timestamp(1) };
        assert_eq!(results.rows::<OverallHighest>(), [highest]);
    }
}
