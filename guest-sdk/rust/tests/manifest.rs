//! What a module says about itself, and how it opens: the manifest of functions of every kind, as text.

use expect_test::expect;
use millstream::function::Module;
use millstream::{
    Clock, Collector, Context, EventTime, Function, Input, ListState, MapState, OperatorState, Output,
    Parameters, Postcard, ProcessContext, State, Timer, UnionState, ValueState, Window,
};

#[derive(Input)]
struct Flight<'a> {
    carrier: &'a str,
    #[column(name = "dep_delay")]
    delay: Option<f64>,
}

#[derive(Output)]
struct Late<'a> {
    carrier: &'a str,
    late: bool,
}

#[derive(Parameters)]
struct Limits {
    /// Minutes.
    #[parameter(default = -15)]
    threshold: i64,
    name: String,
}

/// Marks late flights.
///
/// More about it.
#[millstream::map(name = "mark_late")]
fn mark<'a>(flight: Flight<'a>, _time: EventTime, limits: &Limits, _ctx: &Context) -> Late<'a> {
    let late = flight.delay.is_some_and(|delay| delay > limits.threshold as f64);
    Late { carrier: flight.carrier, late: late && flight.carrier != limits.name }
}

#[derive(State, Clone)]
#[state(version = 4)]
struct Pair {
    number: i32,
    text: Option<String>,
}

#[derive(Function)]
struct Everything {
    pair: ValueState<Pair>,
    numbers: ListState<i64>,
    map: MapState<String, Postcard<Vec<u8>>>,
    dealt: OperatorState<Pair>,
    whole: UnionState<i64>,
    #[parameter(default = true)]
    flag: bool,
    #[memory]
    cache: Vec<u8>,
}

/// Has everything.
#[millstream::process(timers("event", "processing"))]
impl Everything {
    #[input]
    fn left(&mut self, _key: (&str, i64), row: Flight<'_>, out: &mut Collector<Late<'_>>) {
        self.cache.push(0);
        self.map.insert(&row.carrier.to_owned(), Postcard(self.cache.clone()));
        out.emit(Late { carrier: row.carrier, late: self.flag });
    }

    #[input]
    fn right(&mut self, _key: (&str, i64), number: i64, ctx: &mut ProcessContext, odd: &mut Collector<i64>) {
        self.numbers.add(number);
        ctx.set_timer(number);
        odd.emit(number);
    }

    fn on_timer(&mut self, _key: (&str, i64), timer: Timer, _odd: &mut Collector<i64>) {
        if timer.clock == Clock::Event {
            self.pair.set(Pair { number: 1, text: None });
        }
    }

    fn before_barrier(&mut self) {
        self.dealt.get_mut().clear();
        self.whole.get_mut().clear();
    }
}

#[derive(Function)]
struct Count {}

/// Counts.
#[millstream::aggregate]
impl Count {
    fn accumulate(&self, count: &mut i64, _row: ()) {
        *count += 1;
    }

    fn merge(&self, into: &mut i64, other: i64) {
        *into += other;
    }

    fn finish(&self, count: &i64) -> i64 {
        *count
    }
}

#[millstream::window]
fn smallest(_carrier: &str, _window: Window, rows: &[i64]) -> Option<i64> {
    rows.iter().copied().min()
}

millstream::module! {
    name: "example",
    doc: "One of each kind",
    functions: [mark, Everything, Count, smallest],
}

#[test]
fn the_manifest_says_what_stands_in_the_source() {
    let expected = expect![[r#"
        {"manifest":1,"module":{"name":"example","version":"0.1.0","doc":"One of each kind","sdk":"rust 0.1.0"},"functions":[
        {"name":"mark_late","kind":"map","doc":"Marks late flights.",
          "parameters":[{"name":"threshold","type":"int64","default":"-15","doc":"Minutes."},{"name":"name","type":"utf8","doc":""}],
          "inputs":[{"name":"input","distribution":"any","columns":[{"name":"carrier","type":"utf8","nullable":false},{"name":"dep_delay","type":"float64","nullable":true}],"times":true}],
          "key":[],
          "outputs":[{"name":"output","columns":[{"name":"carrier","type":"utf8","nullable":false},{"name":"late","type":"boolean","nullable":false}],"carry":"extend"}],
          "states":[],
          "timers":[],
          "lifecycle":[]},
        {"name":"everything","kind":"process","doc":"Has everything.",
          "parameters":[{"name":"flag","type":"boolean","default":"true","doc":""}],
          "inputs":[{"name":"left","distribution":"keyed","columns":[{"name":"carrier","type":"utf8","nullable":false},{"name":"dep_delay","type":"float64","nullable":true}],"times":false},{"name":"right","distribution":"keyed","columns":[{"name":"value","type":"int64","nullable":false}],"times":false}],
          "key":[{"name":"key_1","type":"utf8","nullable":false},{"name":"key_2","type":"int64","nullable":false}],
          "outputs":[{"name":"output","columns":[{"name":"carrier","type":"utf8","nullable":false},{"name":"late","type":"boolean","nullable":false}],"carry":"replace"},{"name":"odd","columns":[{"name":"value","type":"int64","nullable":false}],"carry":"replace"}],
          "states":[{"name":"pair","kind":"value","columns":[{"name":"number","type":"int32","nullable":false},{"name":"text","type":"utf8","nullable":true}],"version":4},{"name":"numbers","kind":"list","columns":[{"name":"value","type":"int64","nullable":false}],"version":1},{"name":"map","kind":"map","columns":[{"name":"value","type":"binary","nullable":false}],"version":1},{"name":"dealt","kind":"operator","columns":[{"name":"number","type":"int32","nullable":false},{"name":"text","type":"utf8","nullable":true}],"version":4,"redistribution":"split"},{"name":"whole","kind":"operator","columns":[{"name":"value","type":"int64","nullable":false}],"version":1,"redistribution":"union"}],
          "timers":["event","processing"],
          "lifecycle":["before-barrier"]},
        {"name":"count","kind":"aggregate","doc":"Counts.",
          "parameters":[],
          "inputs":[{"name":"input","distribution":"keyed","columns":[],"times":false}],
          "key":[],
          "outputs":[{"name":"output","columns":[{"name":"value","type":"int64","nullable":false}],"carry":"extend"}],
          "states":[],
          "accumulator":{"columns":[{"name":"value","type":"int64","nullable":false}],"version":1},
          "timers":[],
          "lifecycle":[]},
        {"name":"smallest","kind":"window","doc":"",
          "parameters":[],
          "inputs":[{"name":"input","distribution":"keyed","columns":[{"name":"value","type":"int64","nullable":false}],"times":false}],
          "key":[{"name":"key","type":"utf8","nullable":false}],
          "outputs":[{"name":"output","columns":[{"name":"value","type":"int64","nullable":false}],"carry":"extend"}],
          "states":[],
          "timers":[],
          "lifecycle":[]}]}"#]];
    expected.assert_eq(&lines(&MillstreamModule::describe()));
}

/// One line for each function and member, so that a difference can be seen.
fn lines(json: &str) -> String {
    let mut text = json.to_owned();
    for member in ["parameters", "inputs", "key", "outputs", "states", "accumulator", "timers", "lifecycle"] {
        text = text.replace(&format!(",\"{member}\":"), &format!(",\n  \"{member}\":"));
    }
    text.replace("{\"name\":\"mark_late\"", "\n{\"name\":\"mark_late\"")
        .replace("},{\"name\":\"everything\"", "},\n{\"name\":\"everything\"")
        .replace("},{\"name\":\"count\"", "},\n{\"name\":\"count\"")
        .replace("},{\"name\":\"smallest\"", "},\n{\"name\":\"smallest\"")
}

#[test]
fn a_module_opens_only_what_it_has() {
    let refused = |name, kind| MillstreamModule::open(name, kind).err().unwrap_or_default();
    assert_eq!(
        refused("mark", "map"),
        "no function `mark` in this module: expected one of mark_late, everything, count, smallest"
    );
    assert_eq!(refused("count", "map"), "`count` is of kind aggregate: expected a function of kind map");
    assert!(MillstreamModule::open("count", "aggregate").is_ok());
}

/// Whether there were rows.
#[derive(Function)]
struct Any {}

#[millstream::aggregate]
impl Any {
    fn accumulate(&self, any: &mut bool, _row: ()) {
        *any = true;
    }

    fn finish(&self, any: &bool) -> bool {
        *any
    }
}

#[test]
fn an_aggregate_without_merge_says_so() {
    use millstream::function::Function as _;
    use millstream::manifest::{ModuleSpec, describe};
    let module = || ModuleSpec { name: "example", version: "1", doc: "" };
    assert!(describe(module(), &[Any::spec()]).contains(r#""merges":false"#));
    assert!(!describe(module(), &[Count::spec()]).contains("merges"));
}
