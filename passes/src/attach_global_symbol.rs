//! # AttachGlobalSymbol
//!
//! ```text
//! Notation   @g a global function.
//! Needs      Nothing: any form.
//! Effect     def @g(…) { … }   =>   def @g(…, global_symbol="g") { … }     private functions too; another symbol is overwritten
//! Not done   Declarations are symbols of others and stay as they are; so do functions that are values of attributes.
//! Cost       Constant for each function. Idempotent.
//!
//! before     def private @g(%x: int32) {        after   def private @g(%x: int32, global_symbol="g") {
//!              negative(%x)                               negative(%x)
//!            }                                          }
//! ```

use anfora_ir::Module;
use anfora_manager::register_pass;

/// The attribute that a function's name is put in.
pub const GLOBAL_SYMBOL: &str = anfora_ir::GLOBAL_SYMBOL;

register_pass! {
    /// Gives each function its name as the attribute `global_symbol`
    pub ATTACH_GLOBAL_SYMBOL = ModulePass("AttachGlobalSymbol", 0).establishing(["global-symbols"]);
    run |module, cx| {
        cx.count("attached", attach_global_symbol(module) as u64);
        Ok(())
    }
}

/// Gives each function that has a body its name as the attribute [`GLOBAL_SYMBOL`], and returns how many had another or none.
pub fn attach_global_symbol(module: &mut Module) -> usize {
    let mut attached = 0;
    for key in module.order().to_vec() {
        let name = module.name(key).to_string();
        let Some((function, cx)) = module.get_mut(key) else { continue };
        if !function.is_definition() {
            continue;
        }
        let symbol = cx.str_attr(&name);
        if cx.find_attr(function.attrs, GLOBAL_SYMBOL) != Some(symbol) {
            function.attrs = cx.with_attr(function.attrs, GLOBAL_SYMBOL, Some(symbol));
            attached += 1;
        }
    }
    attached
}
