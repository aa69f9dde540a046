//! Text and JSON output of the messages that passes left.

use anfora_ir::{Diagnostic, Module, RenderOptions, diagnostics_json_with, render_module_diagnostics};

use crate::context::PassRemark;

/// Renders the messages that passes left, one after the other, each after the name of its pass. A
/// message is shown with its place underlined in the source that the module was read from, if the
/// source is kept and has the place, or else at the line of the printed module that binds what the
/// message is about. Linear in the source, the messages, and the functions that they name.
pub fn render_remarks(remarks: &[PassRemark], module: &Module, options: &RenderOptions) -> String {
    let named: Vec<Diagnostic> = remarks
        .iter()
        .map(|PassRemark { pass, diagnostic }| {
            let mut named = diagnostic.clone();
            if !pass.is_empty() {
                named.message = format!("{pass}: {}", named.message);
            }
            named
        })
        .collect();
    render_module_diagnostics(&named, module, options)
}

/// Returns the messages that passes left as JSON objects, one a line: those of
/// [`diagnostics_json`](anfora_ir::diagnostics_json), with the name of the `pass` first (empty for
/// a message that no pass left). Linear in the source and the messages.
pub fn remarks_json(remarks: &[PassRemark], module: &Module) -> String {
    let items = remarks.iter().map(|r| (Some(("pass", r.pass.as_str())), &r.diagnostic));
    diagnostics_json_with(items, module.source().map(|s| &**s))
}
