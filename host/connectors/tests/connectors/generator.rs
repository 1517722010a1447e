//! The `generator` source, and the sinks that measure.

use std::path::Path;

use arrow_array::{ArrayRef, BinaryViewArray, Int64Array, RecordBatch, cast::AsArray, types::Int64Type};
use expect_test::expect;
use millstream_connectors::{Checksum, Connectors};
use millstream_operator::{Assignment, Read};
use millstream_types::{Batch, Schema};
use serde_json::{Value, json};
use std::sync::Arc;

use crate::support::{Found, block_on, context, read, read_subtask, source, write};

fn generate(options: Value) -> Found {
    read(&*source("generator", options, &[], Path::new(""))).expect("generated")
}

/// The checksum of batches, by the sink.
fn checksum(batches: &[Batch], schema: &Schema, options: Value) -> (u64, String) {
    let connectors = Connectors::builtin();
    let sink = connectors.sink("checksum", &options, Path::new("")).expect("good options");
    write(&*sink, schema, batches).expect("added up");
    let Checksum { rows, sum } =
        connectors.results().checksums().remove("checksum").expect("the name by default");
    (rows, format!("{sum:x}"))
}

/// Batches of bids only, and their schema.
fn bids(records: u64) -> (Schema, Vec<Batch>) {
    let source =
        source("generator", json!({"kind": "bench-nexmark", "records": records}), &[], Path::new(""));
    let outputs = source.outputs();
    assert_eq!(
        outputs.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        ["bid", "auction", "person"]
    );
    let found = read(&*source).expect("generated");
    let bids =
        found.batches.into_iter().filter(|b| b.records().schema().field(0).name() == "auction").collect();
    (outputs[0].1.clone(), bids)
}

#[test]
fn bids_are_those_of_the_other_engine() {
    // The sum that Apache Flink's output has for a million events.
    let (schema, bids) = bids(1_000_000);
    let form = "{auction},{bidder},{price},{channel},{url},{ts},{extra}";
    assert_eq!(checksum(&bids, &schema, json!({"form": form})), (920_000, "5ada746fbf404b96".to_owned()));
}

#[test]
fn shuffled_records_are_those_of_the_other_engine() {
    let found = generate(json!({"kind": "bench-shuffle", "records": 1_000_000}));
    // What the workload's map does: one more in the last byte.
    let bump = |batch: &Batch| {
        let records = batch.column(1).as_binary_view().iter().flatten().map(|record| {
            let mut record = record.to_vec();
            record[99] += 1;
            record
        });
        let records: ArrayRef = Arc::new(BinaryViewArray::from_iter_values(records));
        Batch::without_times(RecordBatch::try_from_iter([("record", records)]).expect("one column"))
    };
    let bumped: Vec<_> = found.batches.iter().map(bump).collect();
    let schema = crate::support::schema(&[("record", "binary")]);
    assert_eq!(checksum(&bumped, &schema, json!({})), (1_000_000, "19df13960c1c873e".to_owned()));
}

#[test]
fn counts_by_key_are_those_of_the_other_engine() {
    let found = generate(json!({"kind": "bench-process", "records": 1_000_000}));
    let mut counts = std::collections::HashMap::new();
    for batch in &found.batches {
        for key in batch.column(0).as_primitive::<Int64Type>().values() {
            *counts.entry(*key).or_insert(0_i64) += 1;
        }
        assert_eq!(batch.times(), batch.column(1).as_primitive::<Int64Type>().values());
    }
    let (keys, counts): (Vec<i64>, Vec<i64>) = counts.into_iter().unzip();
    let columns = [
        ("key", Arc::new(Int64Array::from(keys)) as ArrayRef),
        ("count", Arc::new(Int64Array::from(counts))),
    ];
    let batch = Batch::without_times(RecordBatch::try_from_iter(columns).expect("two columns"));
    let schema = crate::support::schema(&[("key", "int64"), ("count", "int64")]);
    assert_eq!(checksum(&[batch], &schema, json!({})), (632_485, "225b2380d203dc00".to_owned()));
}

#[test]
fn windows_are_those_of_the_other_engine() {
    let found = generate(json!({"kind": "bench-window", "records": 1_000_000}));
    let mut windows = std::collections::HashMap::new();
    for batch in &found.batches {
        let [keys, times, values] = [0, 1, 2].map(|i| batch.column(i).as_primitive::<Int64Type>().values());
        for ((key, time), value) in keys.iter().zip(times).zip(values) {
            let end = time - time % 10_000 + 10_000;
            let (count, sum, max) = windows.entry((*key, end)).or_insert((0, 0, 0));
            (*count, *sum, *max) = (*count + 1, *sum + value, *value.max(max));
        }
    }
    let mut rows = [const { Vec::new() }; 5];
    for ((key, end), (count, sum, max)) in windows {
        for (column, value) in rows.iter_mut().zip([key, end, count, sum, max]) {
            column.push(value);
        }
    }
    let names = ["key", "end", "count", "sum", "max"];
    let columns = names.into_iter().zip(rows.map(|column| Arc::new(Int64Array::from(column)) as ArrayRef));
    let batch = Batch::without_times(RecordBatch::try_from_iter(columns).expect("five columns"));
    let schema = crate::support::schema(&names.map(|name| (name, "int64")));
    let form = json!({"form": "({key},{end},({count},{sum}),{max})"});
    assert_eq!(checksum(&[batch], &schema, form), (139_303, "ae97900453bdc09b".to_owned()));
}

#[test]
fn mapped_lines_are_those_of_the_other_engine() {
    let found = generate(json!({"kind": "bench-map", "records": 1_000_000}));
    // What the workload's map does to the fourth field.
    let scale = |batch: &Batch| {
        let lines = batch.column(0).as_binary_view().iter().flatten().map(|line| {
            let text = std::str::from_utf8(line).expect("text");
            let amount: u64 = text[32..38].parse().expect("digits");
            format!("{}{:06}{}", &text[..32], amount * 908 / 1000, &text[38..]).into_bytes()
        });
        let lines: ArrayRef = Arc::new(BinaryViewArray::from_iter_values(lines));
        Batch::without_times(RecordBatch::try_from_iter([("line", lines)]).expect("one column"))
    };
    let scaled: Vec<_> = found.batches.iter().map(scale).collect();
    let schema = crate::support::schema(&[("line", "binary")]);
    assert_eq!(checksum(&scaled, &schema, json!({})), (1_000_000, "e51abecbdc3bfa23".to_owned()));
}

#[test]
fn first_records_of_each_kind() {
    let first = |kind: &str| generate(json!({"kind": kind, "records": 3})).shown();
    expect![[r#"
        {"line":"zkxux5h8 pbgneo1s8 gtcdcwg1yj isqim12k cbevjz3yh imzoqv1os qthfpvf4p4 vln3nj b2it qrp2pg"}
        {"line":"tzfoaibl10o catspv1yh rmwjfr5d2 zkjqznkl2ag jskac3os nn3cc k2hn smxn2s8 wxekswk1d1 xkaewga3m3"}
        {"line":"mlu1kj mgitjyqb10a y6ar buxd6z5 l4uz zaymu4on vusqj6n5 hzofk1y4 jw30j laykdc2mj"}
    "#]].assert_eq(&first("bench-wordcount"));
    expect![[r#"
        {"key":88331,"ts":1699999999197,"value":31517}
        {"key":56656,"ts":1699999999638,"value":35074}
        {"key":59118,"ts":1699999999661,"value":7319}
    "#]]
    .assert_eq(&first("bench-window"));
    expect![[r#"
        {"auction":1000,"bidder":1001,"price":667,"channel":"Google","url":"hfzpvbybxwqfcegqwmtkrvzliepspo","ts":"2023-11-14T22:13:20Z","extra":"cwkfifhwmvcwtfgoxdlnvkzxxjeuin"}
        {"auction":1002,"bidder":1001,"price":2116,"channel":"Google","url":"bgubmkclwczjvipvevpbblafasaect","ts":"2023-11-14T22:13:20Z","extra":"fwcfmjitjwactfhktnnhdzekscwnbv"}
        {"id":1000,"item":"srflfdmkomadledknymn","description":"mskzhrwlorimgwqgigbpnibcxeafreryyvpvsvlqrognnqkkeojyvumqqifztytydfwmvqkwfwaxpnhduqkzlcjajggnascyvwcn","initial_bid":238742,"reserve":477484,"ts":"2023-11-14T22:13:20Z","expires":"2023-11-14T22:13:30Z","seller":1000,"category":12,"extra":"asqkwanyapjoiadomkozardekzjoeqbxbmisxmuxulwlglubfiwlrprzdskuplcytfnzmaacjwnzkspigmddxeonymykolplfetcmmciynhwrvgkbpkduskezmpnsibhuufmkbgdjjcapglatkrebsfcunsxmwzajunckvwdeezagctldgwtshdomosityrmqcosqeyicovzchfvcslyprmwclmtcyxchksrsrdywyhgdlxqdiaqsohpzzzciawkaboihndcohysynsteqqpeiwtwjigtcffnuamuxpkviemsojwhwnlmz"}
        {"id":1001,"item":"yqeqtqrdgwtvqxnfbfpm","description":"iambwxyntfpwsfoprkhfpvisgenatkyvzlwhbgizwvsqqvbkjeywhdthlkjuhytctfbigjyoocpwjosqnroopyuxgutqdnxjvxsh","initial_bid":5262491,"reserve":10524982,"ts":"2023-11-14T22:13:20Z","expires":"2023-11-14T22:13:30Z","seller":1000,"category":12,"extra":"arynjkkrwylixyzfrsegulftdkiiergztnhjsgtuxaaoskufiadjikbezgwgnzjvfmdrojxrfaylnruwsronlgyzkuiyzbxtdfbtbgfaveuolmavtmpfedfugkjxyxmtntvykyvcqvdbefxsaftjtcwlfacrwkbmkztfyluzaeqncliylobmkcqkfxvfdtvgwkgyiagqqhbeldqqtpgwiauxxxhcuhmzosmvdlsriacwhidcmcejdwrnxgfvvdoayzauzygqlowbvhiavfwfmyvqcfirdzizrgalnzvqmugpjsetdsekhi"}
        {"id":1002,"item":"lkbdjfbuwrvpiyrbtfnn","description":"sarpdtijfkvrknbmvskmpwhxylniwfwhuoxzerwvwsmnnbuvgwheumsrriovbgxnopjmhhoczjgokucxovdxrfaboweegaybudtm","initial_bid":1338026,"reserve":2676052,"ts":"2023-11-14T22:13:20Z","expires":"2023-11-14T22:13:30Z","seller":1000,"category":10,"extra":"zkxhodilrymzjbevgdfjopgsxkkvbnzorvrkwldkyledaevqwacaarxmndvvkonyrrtivojbpgplbjqummfghsfvuoaczkvwifsjiwghrrsrrcobzkeyopckfsdoklncttsilgovnoikkvcfjcmsamxpjjxuvnlfabckebbotyapvmfbsjtkakbolgokpxwuiwhefnfgvypsxwydxsezhfelpbayocnjbwwedoiisidkhpiiehcnodxndmqpfcnbqxhmmdhmnfgozweieeaeszimajzlbzrjslmtlllhbdgctcfmjlvcts"}
        {"id":1000,"name":"ziuidobgfemsbf","email":"zlcdmhbpdjfsthtfviqx","card":"hsxbsyreifqpsvsoxon","city":"kcflhnjoeb","state":"WY","ts":"2023-11-14T22:13:20Z","extra":"anfrhtuxzfrdexmmbngpbmxbriorhagxghyzcvvkgfxxjnbpfutufavmkdgohhfmwmzyonoamsbqbesytotqeyahmeqmsfcqxtjh"}
    "#]].assert_eq(&generate(json!({"kind": "nexmark", "records": 6})).shown());
}

#[test]
fn subtasks_share_the_records() {
    for kind in ["bench-map", "bench-window", "bench-nexmark"] {
        let source = source("generator", json!({"kind": kind, "records": 20_001}), &[], Path::new(""));
        let mut alone = read(&*source).expect("generated").rows();
        let parts = (0..3).map(|subtask| read_subtask(&*source, subtask, 3).expect("generated").rows());
        let mut together: Vec<_> = parts.flatten().collect();
        alone.sort();
        together.sort();
        assert_eq!(alone, together, "{kind}");
        assert_eq!(alone.len(), 20_001);
    }
}

#[test]
fn fields_have_their_distributions() {
    let fields = json!({
        "id": {"kind": "sequence", "start": 10, "step": -2},
        "n": {"kind": "uniform", "min": 1, "max": 6},
        "x": {"kind": "uniform", "min": 0, "max": 1.5, "null": 0.5},
        "z": {"kind": "zipf", "keys": 100},
        "h": {"kind": "hot", "keys": 1000, "hot-keys": 2, "hot-share": 0.9},
        "c": {"kind": "choice", "values": ["a", "b", "never"], "weights": [3, 1, 0]},
        "s": {"kind": "text", "min-length": 0, "max-length": 3},
        "t": {"kind": "time", "start": "2024-01-01T00:00:00Z", "step": "1500us", "jitter": "10ms"},
    });
    let found = generate(json!({"fields": fields, "records": 20_000, "seed": 7}));
    expect![[r#"
        {"id":10,"n":6,"z":12,"h":0,"c":"b","s":"","t":"2023-12-31T23:59:59.994Z"}
        {"id":8,"n":3,"z":44,"h":0,"c":"a","s":"wrx","t":"2024-01-01T00:00:00.001Z"}
        {"id":6,"n":2,"x":0.9552497063993235,"z":30,"h":1,"c":"a","s":"s","t":"2023-12-31T23:59:59.999Z"}
        {"id":4,"n":3,"z":50,"h":1,"c":"a","s":"h","t":"2024-01-01T00:00:00.003Z"}
    "#]]
    .assert_eq(&(found.rows()[..4].join("\n") + "\n"));
    let rows: Vec<Value> = found.rows().iter().map(|row| serde_json::from_str(row).expect("JSON")).collect();
    let share = |test: &dyn Fn(&Value) -> bool| {
        rows.iter().filter(|row| test(row)).count() as f64 / rows.len() as f64
    };
    let near = |found: f64, wanted: f64| assert!((found - wanted).abs() < 0.02, "{found}, not {wanted}");
    near(share(&|row| row["n"] == 6), 1.0 / 6.0);
    near(share(&|row| row["x"].is_null()), 0.5);
    near(share(&|row| row["x"].as_f64().is_some_and(|x| x < 0.75)), 0.25);
    near(share(&|row| row["z"] == 0), 1.0 / 5.187);
    near(share(&|row| row["h"].as_i64().is_some_and(|h| h < 2)), 0.9);
    near(share(&|row| row["c"] == "a"), 0.75);
    near(share(&|row| row["s"] == ""), 0.25);
    assert!(share(&|row| row["c"] == "never") == 0.0);
    let other = generate(json!({"fields": fields, "records": 4, "seed": 8}));
    assert_ne!(other.rows(), found.rows()[..4]);
}

#[test]
fn options_are_checked() {
    let check = |options: Value, key: &str, message: &str| {
        let error =
            Connectors::builtin().source("generator", &options, None, Path::new("")).err().expect("refused");
        assert_eq!((error.key.as_deref(), error.to_string().as_str()), (Some(key), message));
    };
    check(json!({"kind": "bench-mop"}), "kind", "`bench-mop` is not known here: did you mean `bench-map`?");
    check(json!({"kind": "bench-map", "rate": 0}), "rate", "found `0`, expected a number above 0");
    check(
        json!({"fields": {"a": {"kind": "uniform", "min": 2, "max": 1}}}),
        "fields.a.min",
        "found `2`, expected at most `max`",
    );
    check(
        json!({"fields": {"a": {"kind": "sequence", "stop": 1}}}),
        "fields.a.stop",
        "the connector `generator` has no option `stop`: did you mean `step`?",
    );
    check(
        json!({"fields": {"a": {"kind": "choice", "values": [1, "x"]}}}),
        "fields.a.values",
        "found `[1,\"x\"]`, expected texts, or integers",
    );
}

#[test]
fn records_have_their_numbers() {
    let source = source("generator", json!({"kind": "bench-window", "records": 10}), &[], Path::new(""));
    let found = read_subtask(&*source, 1, 4).expect("generated");
    let positions = found.batches[0].positions().expect("numbers");
    assert_eq!(
        (positions.of(2), positions.to_string()),
        ("operator: record 9".into(), "operator: records 1 to 9".into())
    );
    let found = generate(json!({"kind": "bench-nexmark", "records": 50}));
    let positions = found.batches[0].positions().expect("numbers");
    assert_eq!(positions.of(2), "operator: records 0 to 49", "of one port of several no more is known");
}

#[test]
fn a_rate_is_kept_and_wall_time_ends_it() {
    let started = std::time::Instant::now();
    let found = generate(json!({"kind": "bench-map", "rate": 10_000, "seconds": 0.2}));
    let rows: usize = found.batches.iter().map(Batch::rows).sum();
    assert!(started.elapsed().as_millis() >= 200);
    assert!((1_000..=2_001).contains(&rows), "{rows}");
}

#[test]
fn the_latency_sink_measures_stamped_records() {
    let connectors = Connectors::builtin();
    let source = connectors.source(
        "generator",
        &json!({"kind": "bench-latency", "rate": 5_000, "records": 100}),
        None,
        Path::new(""),
    );
    let source = source.expect("good options");
    let sink = connectors.sink("latency", &json!({}), Path::new("")).expect("good options");
    let schema = source.outputs()[0].1.clone();
    sink.accepts(&schema).expect("it has a column of records");
    assert!(sink.accepts(&crate::support::schema(&[("record", "utf8")])).is_err());
    let mut writer = sink.writer(&schema, &context(0, 1)).expect("a writer");
    let mut enumerator = source.enumerator(1).expect("splits");
    let mut reader = source.reader(&context(0, 1)).expect("a reader");
    let Ok(Assignment::Splits(mut splits)) = enumerator.next_split(0) else {
        panic!("a split for the only subtask")
    };
    reader.start(splits.remove(0)).expect("its own split");
    loop {
        match block_on(reader.read()).expect("generated") {
            Read::Rows { mut batches, .. } => block_on(writer.write(batches.remove(0).1)).expect("measured"),
            Read::Wait(time) => std::thread::sleep(time),
            Read::SplitFinished => break,
        }
    }
    block_on(writer.finish()).expect("added up");
    let found = connectors.results().latencies().remove("latency").expect("the name by default");
    assert_eq!((found.from_emission.count(), found.from_schedule.count()), (100, 100));
    assert!(found.from_emission.quantile(0.5) <= found.from_schedule.quantile(0.5));
}
