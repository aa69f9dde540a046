//! `Debug` in a line: of tables, editors and walks, whose contents would be pages, it says what
//! they are and how much is in them.

/// Implements `Debug` for types by their names and what some of their methods return.
#[doc(hidden)]
#[macro_export]
macro_rules! brief_debug {
    ($($name:ident $(<$($param:lifetime),+>)? $({ $($method:ident),+ })?;)+) => {
        $(impl ::std::fmt::Debug for $name $(<$($param),+>)? {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.debug_struct(stringify!($name))
                    $($(.field(stringify!($method), &self.$method()))+)?
                    .finish_non_exhaustive()
            }
        })+
    };
}

use crate::alpha::AlphaHasher;
use crate::attrs::AttrTable;
use crate::builder::{FunctionBuilder, UnfinishedFunction};
use crate::context::{Context, GlobalTable, LiteralTable};
use crate::cursor::Cursor;
use crate::dim::Dims;
use crate::editor::Editor;
use crate::fork::EndedFork;
use crate::module::Functions;
use crate::names::Names;
use crate::op::{AttrReader, KernelCall, OpRegistry, OpTable, TypeCall};
use crate::overlay::{Additions, Translation};
use crate::purity::EffectScan;
use crate::retype::Retype;
use crate::types::Types;

brief_debug! {
    Additions;
    AlphaHasher;
    AttrReader<'_>;
    AttrTable { len };
    Context;
    Cursor { depth };
    Dims { len };
    Editor<'_>;
    EffectScan<'_>;
    EndedFork;
    FunctionBuilder<'_>;
    Functions<'_>;
    GlobalTable { len };
    KernelCall<'_>;
    LiteralTable { len };
    Names { len };
    OpRegistry;
    OpTable { len };
    Retype { is_needed };
    Translation;
    TypeCall<'_>;
    Types { len };
    UnfinishedFunction;
}
