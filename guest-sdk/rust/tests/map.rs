//! Map functions of every shape.
use millstream::function::Module;
use millstream::{Columns, Context, Input, Output, Parameters, Picked, Reject};

#[derive(Input)]
struct Flight<'a> {
    carrier: &'a str,
    dep_delay: Option<f64>,
}

#[derive(Output)]
struct Late<'a> {
    carrier: &'a str,
    delay: f64,
}

#[derive(Parameters)]
struct Limits {
    /// Minutes.
    #[parameter(default = 15)]
    threshold: i64,
}

/// Keeps late flights.
#[millstream::map(carry = "replace")]
fn late<'a>(flight: Flight<'a>, limits: &Limits, ctx: &Context) -> Option<Late<'a>> {
    ctx.count("seen", 1);
    flight
        .dep_delay
        .filter(|d| *d > limits.threshold as f64)
        .map(|delay| Late { carrier: flight.carrier, delay })
}

/// Keeps.
#[millstream::map]
fn kept(flight: Flight<'_>) -> bool {
    flight.dep_delay.is_some()
}

#[millstream::map]
fn letters(flight: Flight<'_>) -> impl Iterator<Item = &str> {
    flight.carrier.split("")
}

#[millstream::map]
fn refused(flight: Flight<'_>) -> Result<i64, Reject> {
    Ok(flight.carrier.parse::<i64>()?)
}

#[derive(Columns)]
struct Prices {
    price: Vec<i64>,
}

#[millstream::map(columns)]
fn even(prices: Prices) -> Picked<()> {
    let rows = (0..).zip(&prices.price).filter(|(_, p)| **p % 2 == 0).map(|(at, _)| at).collect();
    Picked { rows, columns: () }
}

millstream::module! { name: "shapes", doc: "All shapes.", functions: [late, kept, letters, refused, even] }

#[test]
fn describes() {
    println!("{}", MillstreamModule::describe());
}
