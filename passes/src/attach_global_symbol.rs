//! # AttachGlobalSymbol
//!
//! ```text
//! Notation   @g a global function, P the attribute `system_lib_prefix` of the module.
//! Needs      Nothing: any form.
//! Effect     def @g(…) { … }   =>   def @g(…, global_symbol="g") { … }
//!              Private functions get a symbol too. Another symbol is overwritten.
//!            def private @g(…, Primitive=1)
//!              =>   def private @Pg(…, Primitive=1, global_symbol="Pg")
//!              where the module has P. A private Primitive function gets the prefix in its
//!              symbol and in its name, unless its name begins with P. A public Primitive
//!              function keeps its name, and gets the prefix in its symbol in any case.
//! Linkage    A function with a symbol is external: no pass removes it from then on.
//! Not done   Declarations are symbols of other modules, and stay as they are. Functions that are
//!            values of attributes stay as they are, too.
//! Cost       Constant for each function. Idempotent. A run before the module has P does not change
//!            the result of a run with P.
//!
//! before     def private @g(%x: int32) {    after   def private @g(%x: int32, global_symbol="g") {
//!              negative(%x)                           negative(%x)
//!            }                                      }
//! ```

use anfora_ir::{Attr, FunctionKey, GlobalId, Module, NameId, Visibility};
use anfora_manager::{PassError, register_pass};
use rustc_hash::FxHashMap;

/// The attribute that holds a function's symbol.
pub const GLOBAL_SYMBOL: &str = anfora_ir::GLOBAL_SYMBOL;

/// The attribute of modules with the prefix of the symbols of Primitive functions.
pub const SYSTEM_LIB_PREFIX: &str = "system_lib_prefix";

register_pass! {
    /// Gives each function its name as the attribute `global_symbol`
    pub ATTACH_GLOBAL_SYMBOL = ModulePass("AttachGlobalSymbol", 0).establishing(["global-symbols"]);
    run |module, cx| {
        cx.count("attached", attach_global_symbol(module)? as u64);
        Ok(())
    }
}

/// Gives each function with a body its name as the attribute [`GLOBAL_SYMBOL`]. Returns the number
/// of functions that had another symbol or none. If the module has the attribute
/// [`SYSTEM_LIB_PREFIX`], Primitive functions get this prefix in their symbol and, if they are
/// private, in their name. A private function whose name already begins with the prefix keeps its
/// name.
///
/// # Errors
/// If the prefix is not a string, or two functions would get the same symbol. The module may be
/// half rewritten then.
pub fn attach_global_symbol(module: &mut Module) -> Result<usize, PassError> {
    let prefix = prefix(module)?;
    let mut attached = 0;
    let mut renamed: Vec<(GlobalId, String)> = Vec::new();
    let mut owners: FxHashMap<NameId, FunctionKey> = FxHashMap::default();
    for key in module.order().to_vec() {
        let mut name = module.name(key).to_string();
        let Some((function, cx)) = module.get_mut(key) else { continue };
        if !function.is_definition() {
            continue;
        }
        let old = function.global_symbol(cx);
        if !prefix.is_empty() && function.is_primitive(cx) {
            let private = function.global().filter(|_| function.visibility == Visibility::Private);
            // For a private function, the symbol does not show whether this run or an earlier one
            // added the prefix.
            if private.is_none() || !name.starts_with(&prefix) {
                name.insert_str(0, &prefix);
                renamed.extend(private.map(|global| (global, name.clone())));
            }
        }
        let symbol = cx.names.intern(&name);
        if let Some(other) = owners.insert(symbol, key) {
            return Err(taken(&name, module.name(other)));
        }
        if old != Some(symbol) {
            let (function, cx) = module.get_mut(key).expect("it was there a moment ago");
            let value = cx.str_attr(&name);
            function.attrs = cx.with_attr(function.attrs, GLOBAL_SYMBOL, Some(value));
            attached += 1;
        }
    }
    for (global, name) in renamed {
        let id = module.cx.names.intern(&name);
        if !module.rename(global, id) {
            return Err(taken(&name, &name));
        }
    }
    Ok(attached)
}

/// Returns the prefix of the symbols of Primitive functions.
fn prefix(module: &Module) -> Result<String, PassError> {
    let cx = &module.cx;
    match cx.find_attr(module.attrs(), SYSTEM_LIB_PREFIX).map(|id| cx.attrs.get(id)) {
        None | Some(Attr::None) => Ok(String::new()),
        Some(&Attr::Str(prefix)) => Ok(cx.names.get(prefix).to_string()),
        Some(_) => Err(PassError::new(format!("the attribute `{SYSTEM_LIB_PREFIX}` of the module is not a string"))
            .with_help(format!("write it as `#![{SYSTEM_LIB_PREFIX}=\"name_\"]`"))),
    }
}

#[cold]
fn taken(symbol: &str, other: &str) -> PassError {
    PassError::new(format!("the symbol \"{symbol}\" of a Primitive function is that of `@{other}` already"))
        .with_help(format!("rename one of them, or choose another `{SYSTEM_LIB_PREFIX}`"))
}
