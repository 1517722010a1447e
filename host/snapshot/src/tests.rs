//! Golden bytes, round trips, damage, and who gets what.

use expect_test::expect;
use millstream_types::{Column, DataType, KeyGroup, MaxParallelism, StateChunk, StateForm, StatePart};
use proptest::prelude::*;

use super::*;

fn part(form: StateForm, chunks: Vec<StateChunk>) -> StatePart {
    let columns = vec![Column { name: "n".into(), data_type: DataType::Int64, nullable: true }];
    StatePart { name: "count".into(), form, version: 2, columns, chunks }
}

fn keyed(groups: &[(u16, &[u8])]) -> StatePart {
    let chunk = |(group, bytes): &(u16, &[u8])| StateChunk {
        key_group: Some(KeyGroup(*group)),
        bytes: bytes.to_vec(),
    };
    part(StateForm::Value, groups.iter().map(chunk).collect())
}

fn inline(part: &StatePart) -> StateMetadata {
    let bytes = part.chunks.iter().flat_map(|c| c.bytes.clone()).collect();
    StateMetadata::of_part(part, Location::Inline(bytes), 0)
}

fn example() -> SnapshotMetadata {
    let in_file = StateMetadata::of_part(&keyed(&[(9, b"xyz")]), Location::File("by-key-1".into()), 100);
    SnapshotMetadata {
        checkpoint: 7,
        kind: SnapshotKind::Checkpoint,
        job: "job".into(),
        max_parallelism: MaxParallelism::DEFAULT,
        triggered: 1000,
        completed: 1250,
        operators: vec![OperatorMetadata {
            id: "op".into(),
            subtasks: vec![
                SubtaskMetadata { ended: false, states: vec![inline(&keyed(&[(3, b"ab"), (5, b"c")]))] },
                SubtaskMetadata { ended: true, states: vec![in_file] },
            ],
            shared: vec![inline(&part(StateForm::Enumerator, vec![StateChunk::item(b"e".to_vec())]))],
        }],
    }
}

fn hex(bytes: &[u8]) -> String {
    let lines = bytes.chunks(32).map(|line| line.iter().map(|b| format!("{b:02x}")).collect::<String>());
    lines.map(|line| line + "\n").collect()
}

#[test]
fn golden_bytes() {
    expect![[r#"
        4d4c5354534e4150010000003001000000000000342d1c195734520007000000
        0000000001030000006a6f628000e803000000000000e2040000000000000100
        0000020000006f7002000000000100000005000000636f756e74010200000001
        000000010000006e05000000696e743634010003000000616263020000000300
        000000000000000002000000000000005c73d5249c7173a80500020000000000
        000001000000000000001bf8b9469a21408c010100000005000000636f756e74
        010200000001000000010000006e05000000696e74363401010800000062792d
        6b65792d31010000000900640000000000000003000000000000001f1f416f65
        d276620100000005000000636f756e74210200000001000000010000006e0500
        0000696e7436340100010000006501000000ffff000000000000000001000000
        00000000784aec3b5e2ee7e5
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
fn files_and_sizes_are_known() {
    let metadata = example();
    assert_eq!((metadata.files(), metadata.state_bytes()), (vec!["by-key-1"], 7));
}

/// What a subtask gets, as `name: groups or items`.
fn dealt(operator: &OperatorMetadata, index: u32, parallelism: u32) -> String {
    let max = MaxParallelism::new(4).expect("in range");
    let state = state_of(operator, index, parallelism, max);
    let chunk = |(state, c): (&StateMetadata, &ChunkMetadata)| match c.key_group {
        Some(group) => group.0.to_string(),
        None => match &state.location {
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
    let subtask =
        |ended, parts: &[StatePart]| SubtaskMetadata { ended, states: parts.iter().map(inline).collect() };
    let operator = |second_ended| OperatorMetadata {
        id: "op".into(),
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
    let chunk = (prop::option::of(0u16..1000), prop::collection::vec(any::<u8>(), 0..9));
    let chunk = chunk.prop_map(|(group, bytes)| StateChunk { key_group: group.map(KeyGroup), bytes });
    let data_type = prop::sample::select(DataType::ALL.to_vec());
    let column = (".{0,5}", data_type, any::<bool>());
    let column = column.prop_map(|(name, data_type, nullable)| Column { name, data_type, nullable });
    let columns = prop::collection::vec(column, 0..3);
    let chunks = prop::collection::vec(chunk, 0..4);
    let state = (".{0,5}", form, any::<u32>(), columns, chunks, any::<bool>()).prop_map(
        |(name, form, version, columns, chunks, here)| {
            let part = StatePart { name, form, version, columns, chunks };
            let file = || StateMetadata::of_part(&part, Location::File("f".into()), 3);
            if here { inline(&part) } else { file() }
        },
    );
    let states = prop::collection::vec(state, 0..3).boxed();
    let subtask = (any::<bool>(), states.clone());
    let subtask = subtask.prop_map(|(ended, states)| SubtaskMetadata { ended, states });
    let operator = (".{0,5}", prop::collection::vec(subtask, 0..3), states);
    let operator = operator.prop_map(|(id, subtasks, shared)| OperatorMetadata { id, subtasks, shared });
    (any::<u64>(), any::<i64>(), prop::collection::vec(operator, 0..3)).prop_map(
        |(checkpoint, time, operators)| {
            let completed = time.saturating_add(5);
            SnapshotMetadata { checkpoint, triggered: time, completed, operators, ..example() }
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
