//! What a component is, from the outside: its size and its interfaces.

use wit_component::DecodedWasm;
use wit_parser::{Resolve, WorldId, WorldItem, WorldKey};

/// The outside of a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// How many bytes it has.
    pub size: usize,
    /// What it offers, as in `millstream:function/map-function@0.1.0`, in its order.
    pub exports: Vec<String>,
    /// What it needs from the host, likewise.
    pub imports: Vec<String>,
}

/// The bytes are no component whose interfaces can be read.
#[derive(Debug, thiserror::Error)]
#[error("not a component: {reason}")]
pub struct NotAComponent {
    reason: String,
}

/// Reads the interfaces of a component.
///
/// # Errors
/// When the bytes are no component.
pub fn describe(component: &[u8]) -> Result<Description, NotAComponent> {
    let fail = |reason: &dyn ToString| NotAComponent { reason: reason.to_string() };
    match wit_component::decode(component) {
        Ok(DecodedWasm::Component(resolve, world)) => Ok(read(component.len(), &resolve, world)),
        Ok(DecodedWasm::WitPackage(..)) => Err(fail(&"it is an interface definition, without code")),
        Err(error) => Err(fail(&error.chain().map(ToString::to_string).collect::<Vec<_>>().join(": "))),
    }
}

fn read(size: usize, resolve: &Resolve, world: WorldId) -> Description {
    let world = &resolve.worlds[world];
    let names = |items: &wit_parser::IndexMap<WorldKey, WorldItem>| {
        items.keys().map(|key| resolve.name_world_key(key)).collect()
    };
    Description { size, exports: names(&world.exports), imports: names(&world.imports) }
}
