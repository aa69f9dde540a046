//! Implements `Debug` in one line for tables, editors and walks, whose full contents would take
//! pages: the output has their names and sizes.

/// Implements `Debug` for types with their names and the results of some of their methods.
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
use crate::core::builder::{FunctionBuilder, UnfinishedFunction};
use crate::core::context::{Context, GlobalTable, LiteralTable};
use crate::core::module::Functions;
use crate::edit::editor::Editor;
use crate::edit::retype::Retype;
use crate::ops::op::{AttrReader, KernelCall, OpRegistry, OpTable, TypeCall};
use crate::ops::purity::EffectScan;
use crate::tables::attrs::AttrTable;
use crate::tables::dim::Dims;
use crate::tables::names::Names;
use crate::tables::parallel::fork::EndedFork;
use crate::tables::parallel::overlay::{Additions, Translation};
use crate::tables::types::Types;
use crate::walk::cursor::Cursor;

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
