//! Names and positions of the parts of a job.

use std::{fmt, sync::Arc};

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Wraps a name that has been checked where it was read.
            pub fn new(name: impl AsRef<str>) -> Self {
                Self(Arc::from(name.as_ref()))
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The position as an index into a slice.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

text_id!(
    /// The name of a job as its file gives it.
    JobName
);
text_id!(
    /// The identity of an operator, under which its state is kept for ever: the name of its table in the job
    /// file unless `id` is given; `<id>/<role>` for a derived operator.
    OperatorId
);
index!(
    /// Position of a subtask among the subtasks of its operator.
    SubtaskIndex
);
index!(
    /// Position of an input or output port of an operator.
    PortIndex
);
index!(
    /// How often the execution has been tried before.
    Attempt
);

/// One run of a job, through all its restarts: what sinks leave behind is told apart by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RunId(pub u64);
