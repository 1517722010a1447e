//! NEXMark queries over the bids of an auction site.

mod highest;
mod hottest;
mod single;

pub use highest::{Bid, Highest, HighestOf, OverallBid, OverallHighest, OverallSoFar, Q7Max, Q7Overall};
pub use hottest::{Bids, Counted, Hottest, Q5Count, Q5Top};
pub use single::{Offer, Price, Selected, q0, q1, q2};

millstream::module! {
    name: "nexmark",
    functions: [q0, q1, q2, Q5Count, Q5Top, Q7Max, Q7Overall],
}
