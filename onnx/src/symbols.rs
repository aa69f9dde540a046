//! The names of symbolic dimensions in the file that a module was imported from.

use anfora_ir::Module;

use crate::attributes::entries_of;
use crate::keys;

/// Returns the symbolic dimensions whose name in the file differs from that in the module, because
/// the name in the file is not an identifier. Each is a pair of the names in the file and in the
/// module.
///
/// Cost: linear in the text.
pub fn file_dimensions(module: &Module) -> Vec<(String, String)> {
    let metas = module.functions().map(|(_, function)| function.meta);
    let tables = metas.filter_map(|meta| entries_of(&module.cx, module.cx.find_attr(meta, keys::DIMENSIONS)?));
    tables.flatten().map(|entry| (entry.value().to_owned(), entry.key().to_owned())).collect()
}
