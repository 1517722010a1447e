//! Golden bytes, round trips, damage, and who gets what.

use expect_test::expect;
use millstream_types::{
    ChunkKind, Column, DataType, KeyGroup, MaxParallelism, StateChunk, StateForm, StatePart,
};
use proptest::prelude::*;

use super::*;

fn part(form: StateForm, chunks: Vec<StateChunk>) -> StatePart {
    let columns = vec![Column { name: "n".into(), data_type: DataType::Int64, nullable: true }];
    StatePart { name: "count".into(), form, version: 2, columns, base: None, chunks, files: None }
}

fn keyed(groups: &[(u16, &[u8])]) -> StatePart {
    let chunk = |(group, bytes): &(u16, &[u8])| StateChunk::whole(KeyGroup(*group), bytes.to_vec());
    part(StateForm::Value, groups.iter().map(chunk).collect())
}

fn inline(part: &StatePart) -> StateMetadata {
    let bytes = part.chunks.iter().flat_map(|c| c.bytes.clone()).collect();
    StateMetadata::of_part(part, Location::Inline(bytes), 0)
}

fn item(bytes: &[u8]) -> Vec<StateChunk> {
    vec![StateChunk::item(bytes.to_vec())]
}

/// Everything that a snapshot can have, also what no operator of this version has yet: rows of two inputs, broadcast
/// state, and rows that an asynchronous function has under way.
fn example() -> SnapshotMetadata {
    let in_file = StateMetadata::of_part(&keyed(&[(9, b"xyz")]), Location::File("by-key-1".into()), 100);
    let mut changes = keyed(&[(9, b"uv")]);
    changes.chunks[0].kind = ChunkKind::Changes;
    let changes = StateMetadata::of_part(&changes, Location::File("by-key-1".into()), 0);
    let in_file = changes.upon(&in_file, |file| format!("../chk-5/{file}")).expect("fits");
    let key = Column { name: "k".into(), data_type: DataType::Utf8, nullable: false };
    let input = |name: &str| {
        let chunk = StateChunk::whole(KeyGroup(3), name.as_bytes().to_vec());
        inline(&StatePart { name: name.into(), ..part(StateForm::TimedRows, vec![chunk]) })
    };
    let subtask = |ended, states| SubtaskMetadata { ended, alignment_micros: 300, pause_micros: 20, states };
    let join = vec![
        input("left"),
        input("right"),
        inline(&part(StateForm::Broadcast, item(b"rules"))),
        inline(&part(StateForm::InFlight, item(b"asked"))),
    ];
    SnapshotMetadata {
        checkpoint: 7,
        kind: SnapshotKind::Savepoint,
        job: "job".into(),
        max_parallelism: MaxParallelism::DEFAULT,
        triggered: 1000,
        completed: 1250,
        operators: vec![
            OperatorMetadata {
                id: "op".into(),
                key: vec![key.clone()],
                windows: "tumbling".into(),
                subtasks: vec![
                    subtask(false, vec![inline(&keyed(&[(3, b"ab"), (5, b"c")]))]),
                    subtask(true, vec![in_file]),
                ],
                shared: vec![inline(&part(StateForm::Enumerator, item(b"e")))],
            },
            OperatorMetadata {
                id: "join".into(),
                key: vec![key],
                windows: String::new(),
                subtasks: vec![subtask(false, join)],
                shared: Vec::new(),
            },
        ],
        program: Some(Program {
            job_file: "job.toml".into(),
            form: JobFileForm::Toml,
            text: "[job]\nname = \"job\"\n".into(),
            modules: vec![ModuleMetadata::of("m", b"\0asm")],
        }),
    }
}

fn hex(bytes: &[u8]) -> String {
    let lines = bytes.chunks(32).map(|line| line.iter().map(|b| format!("{b:02x}")).collect::<String>());
    lines.map(|line| line + "\n").collect()
}

#[test]
fn golden_bytes() {
    expect![[r#"
        4d4c5354534e415001000000a803000000000000657f5c9bcea51bcf07000000
        0000000002030000006a6f628000e803000000000000e2040000000000000200
        0000020000006f7001000000010000006b040000007574663800080000007475
        6d626c696e6702000000002c0100000000000014000000000000000100000005
        000000636f756e74010200000001000000010000006e05000000696e74363401
        0100000000030000006162630200000003000000000000000000000000020000
        00000000005c73d5249c7173a805000000000200000000000000010000000000
        00001bf8b9469a21408c012c0100000000000014000000000000000100000005
        000000636f756e74010200000001000000010000006e05000000696e74363401
        0200000001110000002e2e2f63686b2d352f62792d6b65792d31010800000062
        792d6b65792d3102000000090000000064000000000000000300000000000000
        1f1f416f65d27662090001010000000000000000000200000000000000734285
        2e4653efc70100000005000000636f756e74210200000001000000010000006e
        05000000696e743634010100000000010000006501000000ffff000000000000
        00000000000100000000000000784aec3b5e2ee7e5040000006a6f696e010000
        00010000006b0400000075746638000000000001000000002c01000000000000
        140000000000000004000000040000006c6566740a0200000001000000010000
        006e05000000696e743634010100000000040000006c65667401000000030000
        00000000000000000000040000000000000014c85797e5b42c17050000007269
        6768740a0200000001000000010000006e05000000696e743634010100000000
        0500000072696768740100000003000000000000000000000000050000000000
        0000896ca0d1e4be070105000000636f756e7413020000000100000001000000
        6e05000000696e7436340101000000000500000072756c657301000000ffff00
        000000000000000000000500000000000000fe54e2ce3a87c23805000000636f
        756e74220200000001000000010000006e05000000696e743634010100000000
        0500000061736b656401000000ffff0000000000000000000000050000000000
        00008475908ca4418fd90000000001080000006a6f622e746f6d6c0113000000
        5b6a6f625d0a6e616d65203d20226a6f62220a01000000010000006d003e6ee8
        5b30b92152036efd974c9a3907c65635ec190c05a089b180a57dc03a04000000
        000000001c0000006d6f64756c652d303033653665653835623330623932312e
        7761736d
    "#]]
    .assert_eq(&hex(&example().encode()));
}

/// Every version reads what every earlier one wrote.
#[test]
fn golden_files_are_read() {
    let first = include_bytes!("../golden/version-1.snapshot");
    assert_eq!(SnapshotMetadata::decode(first), Ok(example()));
}

#[test]
fn damage_anywhere_is_found() {
    let file = example().encode();
    for end in 0..file.len() {
        assert!(SnapshotMetadata::decode(&file[..end]).is_err(), "cut at {end}");
    }
    for at in 0..file.len() {
        let mut damaged = file.clone();
        damaged[at] ^= 0x10;
        assert!(SnapshotMetadata::decode(&damaged).is_err(), "altered at {at}");
    }
    let mut longer = file.clone();
    longer.push(0);
    let error = SnapshotMetadata::decode(&longer).expect_err("a byte too many");
    assert_eq!(error, SnapshotError::Length { found: longer.len() as u64, expected: file.len() as u64 });
    let mut later = file;
    later[8] = 9;
    let error = SnapshotMetadata::decode(&later).expect_err("a later version").to_string();
    assert_eq!(error, "snapshot metadata of version 9: this version reads up to 1");
    assert!(SnapshotMetadata::decode(b"hello, I am no snapshot at all").is_err());
}

#[test]
fn a_module_is_known_by_its_bytes_and_lies_beside_the_metadata() {
    let module = ModuleMetadata::of("m", b"\0asm");
    assert!(module.is(b"\0asm") && !module.is(b"\0asn") && module.length == 4);
    for file in ["", "../secret", "a/b", "a\\b"] {
        let mut metadata = example();
        let program = metadata.program.as_mut().expect("it is a savepoint");
        program.modules[0].file = file.into();
        let error = SnapshotMetadata::decode(&metadata.encode()).expect_err(file).to_string();
        assert!(error.contains("is no file beside it"), "{error}");
    }
}

#[test]
fn files_and_sizes_are_known() {
    let metadata = example();
    assert_eq!(
        (metadata.files(), metadata.state_bytes()),
        (vec!["../chk-5/by-key-1", "by-key-1", "module-003e6ee85b30b921.wasm"], 28)
    );
}

/// What a subtask gets, as `name: groups or items`.
fn dealt(operator: &OperatorMetadata, index: u32, parallelism: u32) -> String {
    let max = MaxParallelism::new(4).expect("in range");
    let state = state_of(operator, index, parallelism, max);
    let chunk = |(state, c): (&StateMetadata, &ChunkMetadata)| match c.key_group {
        Some(group) => group.0.to_string(),
        None => match &state.places[usize::from(c.place)] {
            Location::Inline(bytes) => char::from(bytes[c.offset as usize]).to_string(),
            Location::File(_) => "?".to_owned(),
        },
    };
    let chunks = state.states.iter().flat_map(|s| s.chunks.iter().map(move |c| (s, c)));
    let text: Vec<String> = chunks.map(chunk).collect();
    text.join(" ") + if state.ended { " ended" } else { "" }
}

#[test]
fn chunks_go_to_whom_they_belong_at_any_parallelism() {
    let items = |text: &[u8]| text.iter().map(|&b| StateChunk::item(vec![b])).collect::<Vec<_>>();
    let subtask = |ended, parts: &[StatePart]| {
        let states = parts.iter().map(inline).collect();
        SubtaskMetadata { ended, states, ..SubtaskMetadata::default() }
    };
    let operator = |second_ended| OperatorMetadata {
        id: "op".into(),
        key: Vec::new(),
        windows: String::new(),
        subtasks: vec![
            subtask(true, &[keyed(&[(0, b"x"), (1, b"x")]), part(StateForm::Items, items(b"abc"))]),
            subtask(
                second_ended,
                &[keyed(&[(2, b"x"), (3, b"x")]), part(StateForm::UnionItems, items(b"u"))],
            ),
        ],
        shared: Vec::new(),
    };
    let all = |of: &OperatorMetadata, parallelism| {
        (0..parallelism).map(|i| dealt(of, i, parallelism)).collect::<Vec<_>>()
    };
    assert_eq!(all(&operator(false), 2), ["0 1 a b c ended", "2 3 u"]);
    assert_eq!(all(&operator(false), 1), ["0 1 a b c 2 3 u"]);
    assert_eq!(all(&operator(true), 4), ["0 a u ended", "1 b u ended", "c 2 u ended", "3 u ended"]);
}

fn metadata() -> impl Strategy<Value = SnapshotMetadata> {
    let form = prop::sample::select(StateForm::ALL.to_vec());
    let chunk = (prop::option::of(0u16..1000), any::<bool>(), prop::collection::vec(any::<u8>(), 0..9));
    let chunk = chunk.prop_map(|(group, whole, bytes)| {
        let kind = if whole { ChunkKind::Whole } else { ChunkKind::Changes };
        StateChunk { key_group: group.map(KeyGroup), kind, bytes }
    });
    let data_type = prop::sample::select(DataType::ALL.to_vec());
    let column = (".{0,5}", data_type, any::<bool>());
    let column = column.prop_map(|(name, data_type, nullable)| Column { name, data_type, nullable });
    let columns = prop::collection::vec(column, 0..3).boxed();
    let key = columns.clone();
    let chunks = prop::collection::vec(chunk, 0..4);
    // Two that lie at one place are as good as impossible.
    let place = (any::<bool>(), any::<u64>());
    let state = (".{0,5}", form, any::<u32>(), columns, chunks, place).prop_map(
        |(name, form, version, columns, chunks, (here, at))| {
            let part = StatePart { name, form, version, columns, base: None, chunks, files: None };
            let file = || StateMetadata::of_part(&part, Location::File("f".into()), at >> 8);
            if here { inline(&part) } else { file() }
        },
    );
    let states = prop::collection::vec(state, 0..3).boxed();
    let subtask = (any::<bool>(), any::<u64>(), any::<u64>(), states.clone());
    let subtask = subtask.prop_map(|(ended, alignment_micros, pause_micros, states)| SubtaskMetadata {
        ended,
        alignment_micros,
        pause_micros,
        states,
    });
    let operator = (".{0,5}", key, ".{0,5}", prop::collection::vec(subtask, 0..3), states);
    let operator = operator.prop_map(|(id, key, windows, subtasks, shared)| OperatorMetadata {
        id,
        key,
        windows,
        subtasks,
        shared,
    });
    (any::<u64>(), any::<i64>(), prop::collection::vec(operator, 0..3), any::<bool>()).prop_map(
        |(checkpoint, time, operators, savepoint)| {
            let completed = time.saturating_add(5);
            let program = example().program.filter(|_| savepoint);
            SnapshotMetadata { checkpoint, triggered: time, completed, operators, program, ..example() }
        },
    )
}

proptest! {
    #[test]
    fn what_was_written_is_read_back(metadata in metadata()) {
        prop_assert_eq!(SnapshotMetadata::decode(&metadata.encode()), Ok(metadata));
    }

    #[test]
    fn no_bytes_make_it_panic(mut body in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut file = example().encode()[..12].to_vec();
        file.extend((body.len() as u64).to_le_bytes());
        file.extend(checksum(&body).to_le_bytes());
        file.append(&mut body);
        drop(SnapshotMetadata::decode(&file));
    }
}

#[test]
fn bytes_that_are_named_twice_and_files_of_others_are_refused() {
    let refused = |change: fn(&mut StateMetadata), words: &str| {
        let mut metadata = example();
        let mut states = metadata.operators.iter_mut().flat_map(|operator| {
            let subtasks = operator.subtasks.iter_mut().flat_map(|subtask| &mut subtask.states);
            subtasks.chain(&mut operator.shared)
        });
        let in_file =
            |state: &&mut StateMetadata| state.places.iter().any(|place| matches!(place, Location::File(_)));
        change(states.find(in_file).expect("the example has one"));
        let error = SnapshotMetadata::decode(&metadata.encode()).expect_err(words).to_string();
        assert!(error.contains(words), "{error}");
    };
    refused(|state| state.chunks.extend(state.chunks.clone()), "lie over each other");
    refused(
        |state| state.places[0] = Location::File("../../secret".into()),
        "`../../secret` is no file beside it",
    );
}
