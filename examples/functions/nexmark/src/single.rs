//! q0, q1 and q2: a bid at a time.

use millstream::{Input, Output};

/// Every bid as it is.
#[millstream::map]
pub fn q0(_bid: ()) {}

/// A bid's price, read and made.
#[derive(millstream::State, Debug, PartialEq)]
pub struct Price {
    /// In cents.
    pub price: i64,
}

/// Every bid with its price in euros.
#[millstream::map]
pub fn q1(bid: Price) -> Price {
    Price { price: bid.price * 908 / 1000 }
}

/// What q2 reads of a bid.
#[derive(Input)]
pub struct Offer {
    /// The auction bid for.
    pub auction: i64,
    /// In cents.
    pub price: i64,
}

/// What q2 keeps of it.
#[derive(Output, Debug, PartialEq)]
pub struct Selected {
    /// The auction bid for.
    pub auction: i64,
    /// In cents.
    pub price: i64,
}

/// Auction and price of the bids for auctions whose number 123 divides.
#[millstream::map(carry = "replace")]
pub fn q2(bid: Offer) -> Option<Selected> {
    (bid.auction % 123 == 0).then_some(Selected { auction: bid.auction, price: bid.price })
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream::testing;

    #[test]
    fn q0_keeps_every_bid() {
        let results = testing::map::<q0>().run([(), ()]);
        assert_eq!(results.origins(), [Some(0), Some(1)]);
    }

    #[test]
    fn q1_converts_prices() {
        let results = testing::map::<q1>().run([1000, 1, 999].map(|price| Price { price }));
        assert_eq!(results.rows::<Price>(), [908, 0, 907].map(|price| Price { price }));
    }

    #[test]
    fn q2_selects_auctions() {
        let bids = [(122, 1), (123, 2), (246, 3)].map(|(auction, price)| Offer { auction, price });
        let results = testing::map::<q2>().run(bids);
        let selected = [(123, 2), (246, 3)].map(|(auction, price)| Selected { auction, price });
        assert_eq!(results.rows::<Selected>(), selected);
    }
}
