//! The plans of the examples, with their modules as manifests.

use std::{path::Path, sync::Arc};

use expect_test::{Expect, expect};
use millstream_graph::{ConnectorCatalog, ConnectorProblem, JobFile, JobFormat, Options, Plan, SourceText};
use millstream_types::{Manifest, Schema};

fn check(job: &str, expected: Expect) {
    let path = format!("{}/../../examples/{job}/job.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect("an example of this name");
    let file =
        JobFile::read(SourceText::new(format!("examples/{job}/job.toml"), text), JobFormat::Toml, &|_| None);
    let plan =
        Plan::new(file, &module, &Connectors).unwrap_or_else(|error| panic!("{}", error.0.render(false)));
    assert!(plan.warnings.is_empty(), "{}", plan.warnings.render(false));
    expected.assert_eq(&plan.describe().to_string());
}

fn module(path: &Path) -> Result<Arc<Manifest>, String> {
    let text = match path.to_str() {
        Some(path) if path.ends_with("/../../target/guests/flights.wasm") => {
            include_str!("manifests/flights.json")
        }
        Some(path) if path.ends_with("/../../target/guests/nexmark.wasm") => {
            include_str!("manifests/nexmark.json")
        }
        Some(path) if path.ends_with("/../../target/guests/wordcount.wasm") => {
            include_str!("manifests/wordcount.json")
        }
        _ => return Err(format!("no manifest for {}", path.display())),
    };
    Manifest::parse(text).map(Arc::new).map_err(|e| e.to_string())
}

/// As much of the connectors as the examples use.
struct Connectors;

impl ConnectorCatalog for Connectors {
    fn sources(&self) -> Vec<&str> {
        vec!["file", "generator"]
    }

    fn sinks(&self) -> Vec<&str> {
        vec!["file"]
    }

    fn source_outputs(
        &self,
        connector: &str,
        options: &Options,
        schema: Option<&Schema>,
    ) -> Result<Vec<(String, Schema)>, Vec<ConnectorProblem>> {
        if connector == "file" {
            let schema = schema.ok_or_else(|| vec![ConnectorProblem::general("a `schema` is needed")])?;
            return Ok(vec![("out".to_owned(), schema.clone())]);
        }
        assert_eq!(options.get("kind"), Some(&"nexmark".into()));
        let port = |name: &str, columns: &str| {
            let field =
                |c: &str| c.split_once(' ').map(|(name, kind)| millstream_types::Field::parse(name, kind));
            let fields: Option<Result<Vec<_>, _>> = columns.split(", ").map(field).collect();
            (name.to_owned(), Schema::new(fields.expect("pairs").expect("types")))
        };
        Ok(vec![
            port(
                "bid",
                "auction int64, bidder int64, price int64, channel utf8, url utf8, ts timestamp, extra utf8",
            ),
            port("auction", "id int64, item utf8, seller int64, category int64, ts timestamp"),
            port("person", "id int64, name utf8, city utf8, state utf8, ts timestamp"),
        ])
    }

    fn sink_accepts(&self, _: &str, _: &Options, _: Option<&Schema>) -> Result<(), Vec<ConnectorProblem>> {
        Ok(())
    }
}

#[test]
fn busy_planes() {
    check(
        "busy-planes",
        expect![[r#"
            job busy-planes: parallelism 2, 2 slots, 2 tasks

            task 1 x2: flights -> known
              flights: source file
                time     time_hour, out of order by 1d
                out      time_hour timestamp, sched_dep_time int32, carrier utf8, flight int32, origin utf8, tailnum utf8?
              known: map flights.known_planes
                from     flights.out
                reads    tailnum utf8?
                out      time_hour timestamp, sched_dep_time int32, carrier utf8, flight int32, origin utf8, tailnum utf8
              known.output to task 2, busy: hash (tailnum), 4 channels

            task 2 x2: busy -> report
              busy: process flights.busy_planes
                from     known.output
                key      tailnum
                reads    time_hour timestamp, sched_dep_time int32, carrier utf8, flight int32, origin utf8
                set      limit = 5
                out      tailnum utf8, time timestamp, departures int64
              report: sink file
                from     busy.output
        "#]],
    );
}

#[test]
fn delays() {
    check(
        "delays",
        expect![[r#"
            job delays: parallelism 2, 2 slots, 2 tasks

            task 1 x2: flights -> departed
              flights: source file
                time     time_hour, out of order by 1d
                out      time_hour timestamp, carrier utf8, dep_delay float64?
              departed: map flights.only_delayed
                from     flights.out
                reads    delay float64? = dep_delay
                out      time_hour timestamp, carrier utf8, dep_delay float64?, delay float64
              departed.output to task 2, by_carrier: hash (carrier), 4 channels

            task 2 x2: by_carrier -> report
              by_carrier: aggregate flights.delay_stats
                from     departed.output
                key      carrier
                window   tumbling 1d of event time, lateness 1h
                reads    delay float64
                out      carrier utf8, day timestamp, count int64, mean float64, maximum float64, p90 float64
              report: sink file
                from     by_carrier.output
        "#]],
    );
}

#[test]
fn nexmark_q0() {
    check(
        "nexmark-q0",
        expect![[r#"
            job nexmark-q0: parallelism 2, 2 slots, 1 task

            task 1 x2: events -> bids -> report
              events: source generator
                time     ts, out of order by 1s
                out      auction int64, bidder int64, price int64, channel utf8, url utf8, ts timestamp, extra utf8
                out auction id int64, item utf8, seller int64, category int64, ts timestamp
                out person id int64, name utf8, city utf8, state utf8, ts timestamp
              bids: map nexmark.q0
                from     events.bid
                out      auction int64, bidder int64, price int64, channel utf8, url utf8, ts timestamp, extra utf8
              report: sink file
                from     bids.output
        "#]],
    );
}

#[test]
fn nexmark_q1() {
    check(
        "nexmark-q1",
        expect![[r#"
            job nexmark-q1: parallelism 2, 2 slots, 1 task

            task 1 x2: events -> converted -> report
              events: source generator
                time     ts, out of order by 1s
                out      auction int64, bidder int64, price int64, channel utf8, url utf8, ts timestamp, extra utf8
                out auction id int64, item utf8, seller int64, category int64, ts timestamp
                out person id int64, name utf8, city utf8, state utf8, ts timestamp
              converted: map nexmark.q1
                from     events.bid
                reads    price int64
                out      auction int64, bidder int64, price int64, channel utf8, url utf8, ts timestamp, extra utf8
              report: sink file
                from     converted.output
        "#]],
    );
}

#[test]
fn nexmark_q2() {
    check(
        "nexmark-q2",
        expect![[r#"
            job nexmark-q2: parallelism 2, 2 slots, 1 task

            task 1 x2: events -> selected -> report
              events: source generator
                time     ts, out of order by 1s
                out      auction int64, bidder int64, price int64, channel utf8, url utf8, ts timestamp, extra utf8
                out auction id int64, item utf8, seller int64, category int64, ts timestamp
                out person id int64, name utf8, city utf8, state utf8, ts timestamp
              selected: map nexmark.q2
                from     events.bid
                reads    auction int64, price int64
                out      auction int64, price int64
              report: sink file
                from     selected.output
        "#]],
    );
}

#[test]
fn nexmark_q5() {
    check(
        "nexmark-q5",
        expect![[r#"
            job nexmark-q5: parallelism 2, 2 slots, 3 tasks

            task 1 x2: events
              events: source generator
                time     ts, out of order by 1s
                out      auction int64, bidder int64, price int64, channel utf8, url utf8, ts timestamp, extra utf8
                out auction id int64, item utf8, seller int64, category int64, ts timestamp
                out person id int64, name utf8, city utf8, state utf8, ts timestamp
              events.bid to task 2, counts: hash (auction), 4 channels

            task 2 x2: counts
              counts: aggregate nexmark.q5_count
                from     events.bid
                key      auction
                window   sliding 10s every 2s of event time
                out      auction int64, window_end timestamp, count int64
              counts.output to task 3, top: hash (window_end), 4 channels

            task 3 x2: top -> report
              top: process nexmark.q5_top
                from     counts.output
                key      window_end
                reads    auction int64, count int64
                out      window_end timestamp, auction int64, count int64
              report: sink file
                from     top.output
        "#]],
    );
}

#[test]
fn nexmark_q7() {
    check(
        "nexmark-q7",
        expect![[r#"
            job nexmark-q7: parallelism 2, 2 slots, 4 tasks

            task 1 x2: events
              events: source generator
                time     ts, out of order by 1s
                out      auction int64, bidder int64, price int64, channel utf8, url utf8, ts timestamp, extra utf8
                out auction id int64, item utf8, seller int64, category int64, ts timestamp
                out person id int64, name utf8, city utf8, state utf8, ts timestamp
              events.bid to task 2, by_auction: hash (auction), 4 channels

            task 2 x2: by_auction
              by_auction: aggregate nexmark.q7_max
                from     events.bid
                key      auction
                window   tumbling 10s of event time
                reads    price int64, bidder int64, ts timestamp
                out      auction int64, price int64, bidder int64, ts timestamp
              by_auction.output to task 3, overall: global, 2 channels

            task 3 x1: overall
              overall: aggregate nexmark.q7_overall
                from     by_auction.output
                key      one for the whole stream
                window   tumbling 10s of event time
                reads    auction int64, price int64, bidder int64, ts timestamp
                out      auction int64, price int64, bidder int64, ts timestamp
              overall.output to task 4, report: rebalance, 2 channels

            task 4 x2: report
              report: sink file
                from     overall.output
        "#]],
    );
}

#[test]
fn rotations() {
    check(
        "rotations",
        expect![[r#"
            job rotations: parallelism 2, 2 slots, 2 tasks

            task 1 x2: flights -> known
              flights: source file
                time     time_hour, out of order by 1d
                out      time_hour timestamp, tailnum utf8?, dep_delay float64?
              known: map flights.known_planes
                from     flights.out
                reads    tailnum utf8?
                out      time_hour timestamp, tailnum utf8, dep_delay float64?
              known.output to task 2, by_plane: hash (tailnum), 4 channels

            task 2 x2: by_plane -> report
              by_plane: window flights.rotations
                from     known.output
                key      tailnum
                window   session 12h of event time
                reads    time_hour timestamp, dep_delay float64?
                out      tailnum utf8, first timestamp, last timestamp, legs int64, dep_delay float64, longest_wait int64
              report: sink file
                from     by_plane.output
        "#]],
    );
}

#[test]
fn wordcount() {
    check(
        "wordcount",
        expect![[r#"
            job wordcount: parallelism 2, 2 slots, 2 tasks

            task 1 x2: text -> words
              text: source file
                out      line utf8
              words: map wordcount.split
                from     text.out
                reads    line utf8
                out      word utf8
              words.output to task 2, counts: hash (word), 4 channels

            task 2 x2: counts -> report
              counts: process wordcount.count
                from     words.output
                key      word
                out      word utf8, count int64
              report: sink file
                from     counts.output
        "#]],
    );
}
