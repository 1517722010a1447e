//! Makes components of hand-written core modules, and the memory images that they return.

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// A core module against one of the worlds of `wit/`.
pub(crate) struct Wat {
    pub(crate) world: &'static str,
    pub(crate) manifest: String,
    /// Imports: they have to come first in a module.
    pub(crate) imports: &'static str,
    /// Functions and data besides `describe`, memory and allocator.
    pub(crate) body: String,
    /// Bytes at [`Image::BASE`].
    pub(crate) data: Vec<u8>,
}

impl Wat {
    /// A module for a world, with a manifest.
    pub(crate) fn new(world: &'static str, manifest: &str, body: impl Into<String>) -> Self {
        Self { world, manifest: manifest.to_owned(), imports: "", body: body.into(), data: Vec::new() }
    }

    /// The component.
    pub(crate) fn build(&self) -> Vec<u8> {
        component(self.world, &self.text(), |wit| wit)
    }

    /// The core module in text form.
    pub(crate) fn text(&self) -> String {
        let Self { imports, body, .. } = self;
        let (manifest, length) = (escaped(self.manifest.as_bytes()), self.manifest.len());
        let (data, base) = (escaped(&self.data), Image::BASE);
        let manifest_at = 0x8000;
        format!(
            r#"(module {imports}
              (memory (export "memory") 16)
              (global $heap (mut i32) (i32.const 0x40000))
              (data (i32.const 16) "\00\80\00\00{length_bytes}")
              (data (i32.const {manifest_at}) "{manifest}")
              (data (i32.const {base}) "{data}")
              (func (export "cabi_realloc") (param $old i32) (param $old_size i32) (param $align i32) (param $size i32)
                (result i32) (local $at i32)
                (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 7)) (i32.const -8)))
                (global.set $heap (i32.add (local.get $at) (local.get $size)))
                (block $enough (loop $grow
                  (br_if $enough (i32.le_u (global.get $heap) (i32.mul (memory.size) (i32.const 65536))))
                  (drop (memory.grow (i32.const 16)))
                  (br $grow)))
                (local.get $at))
              (func $free (global.set $heap (i32.const 0x40000)))
              (func (export "millstream:function/manifest@0.1.0#describe") (result i32) (i32.const 16))
              {body})"#,
            length_bytes = escaped(&(length as u32).to_le_bytes()),
        )
    }
}

/// `open` and `close` of an interface, which do nothing.
pub(crate) fn open_and_close(interface: &str) -> String {
    format!(
        r#"(func (export "millstream:function/{interface}@0.1.0#open") (param i32 i32) (result i32) (i32.const 32))
           (func (export "millstream:function/{interface}@0.1.0#close"))"#
    )
}

/// A component of a core module in text form; `edit` may change the text of `wit/`.
pub(crate) fn component(world: &str, text: &str, edit: impl Fn(String) -> String) -> Vec<u8> {
    let mut core = wat::parse_str(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let wit = concat!(env!("CARGO_MANIFEST_DIR"), "/../../wit/function.wit");
    let wit = edit(std::fs::read_to_string(wit).expect("the interface is in the repository"));
    let mut resolve = Resolve::default();
    let package = resolve.push_str("function.wit", &wit).expect("the interface parses");
    let world = resolve.select_world(&[package], Some(world)).expect("a world of the interface");
    embed_component_metadata(&mut core, &resolve, world, StringEncoding::UTF8)
        .expect("metadata can be embedded");
    let mut encoder =
        ComponentEncoder::default().validate(true).module(&core).expect("a module of that world");
    encoder.encode().unwrap_or_else(|e| panic!("{e:?}\n{text}"))
}

fn escaped(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("\\{b:02x}")).collect()
}

/// Bytes that a guest holds in its memory: what it returns.
pub(crate) struct Image {
    bytes: Vec<u8>,
}

/// An output as a guest returns it, right or wrong.
pub(crate) struct Returned {
    pub(crate) port: u32,
    pub(crate) rows: u32,
    /// Case of the origin, then its list.
    pub(crate) origin: (u32, List),
    pub(crate) columns: Vec<ReturnedColumn>,
}

/// A column as a guest returns it: case of the layout and its words.
#[derive(Clone)]
pub(crate) struct ReturnedColumn {
    pub(crate) validity: Option<List>,
    pub(crate) layout: u32,
    pub(crate) words: Vec<u32>,
}

/// Address and length.
pub(crate) type List = (u32, u32);

impl Image {
    /// Where the image starts in the guest's memory.
    pub(crate) const BASE: u32 = 0x10000;

    pub(crate) fn new() -> Self {
        Self { bytes: Vec::new() }
    }

    /// Puts bytes down and says where.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> u32 {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        let at = Self::BASE + self.bytes.len() as u32;
        self.bytes.extend_from_slice(bytes);
        at
    }

    /// A list of numbers.
    pub(crate) fn list<const N: usize, T: Copy>(
        &mut self,
        items: &[T],
        bytes: impl Fn(T) -> [u8; N],
    ) -> List {
        let content: Vec<u8> = items.iter().flat_map(|&i| bytes(i)).collect();
        (self.put(&content), items.len() as u32)
    }

    pub(crate) fn words(&mut self, words: &[u32]) -> List {
        self.list(words, u32::to_le_bytes)
    }

    /// A column of 64-bit integers.
    pub(crate) fn int64s(&mut self, values: &[i64]) -> ReturnedColumn {
        let (at, length) = self.list(values, i64::to_le_bytes);
        ReturnedColumn { validity: None, layout: 4, words: vec![at, length] }
    }

    /// A column of text or bytes.
    pub(crate) fn var(&mut self, offsets: &[u32], bytes: &[u8]) -> ReturnedColumn {
        let (offsets_at, offset_count) = self.words(offsets);
        let bytes_at = self.put(bytes);
        ReturnedColumn {
            validity: None,
            layout: 8,
            words: vec![offsets_at, offset_count, bytes_at, bytes.len() as u32],
        }
    }

    /// A successful outcome; its address.
    pub(crate) fn outcome(&mut self, outputs: &[Returned], rejected: &[(u32, &str)]) -> u32 {
        let mut records = Vec::new();
        for output in outputs {
            let columns = self.columns(&output.columns);
            let (case, (at, length)) = output.origin;
            records.extend([output.port, output.rows, case, at, length, columns.0, columns.1]);
        }
        let mut refusals = Vec::new();
        for (row, reason) in rejected {
            refusals.extend([*row, self.put(reason.as_bytes()), reason.len() as u32, 0]);
        }
        let (outputs_at, _) = self.words(&records);
        let (rejected_at, _) = self.words(&refusals);
        self.words(&[0, outputs_at, outputs.len() as u32, rejected_at, rejected.len() as u32]).0
    }

    /// An `err` with a text; its address.
    pub(crate) fn refusal(&mut self, message: &str) -> u32 {
        let at = self.put(message.as_bytes());
        self.words(&[1, at, message.len() as u32, 0, 0]).0
    }

    /// A list of columns.
    pub(crate) fn columns(&mut self, columns: &[ReturnedColumn]) -> List {
        let mut records = Vec::new();
        for column in columns {
            let (has, (at, length)) = column.validity.map_or((0, (0, 0)), |list| (1, list));
            let mut words = column.words.clone();
            words.resize(4, 0);
            records.extend([has, at, length, column.layout]);
            records.extend(words);
            records.extend([0, 0]);
        }
        (self.words(&records).0, columns.len() as u32)
    }

    /// The bytes at [`Image::BASE`].
    pub(crate) fn finish(self) -> Vec<u8> {
        self.bytes
    }
}
