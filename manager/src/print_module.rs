//! # PrintIR
//!
//! ```text
//! Notation   M the module, s the text of the option `header`.
//! Effect     M  =>  M, and "// PrintIR: s" and the text of M are printed
//! Never      The module is not changed.
//! Not done   After a broken pipe, nothing more is printed.
//! Cost       A print of the module. Idempotent.
//!
//! before     def @f(%x: int32) {                after   the same; printed is
//!              negative(%x)
//!            }                                          // PrintIR: after folding
//!                                                       def @f(%x: int32) -> int32 {
//!                                                         negative(%x)
//!                                                       }
//! ```
//!
//! The text goes to standard error, or to the output of the context
//! (`PassContextBuilder::print_to`). To print around passes without adding to the pipeline, use the
//! instrument [`PrintIr`](crate::PrintIr).

use anfora_ir::{Module, ModuleText, PrintOptions};

use crate::context::PassContext;
use crate::error::PassError;
use crate::register_pass;

register_pass! {
    /// Prints the module, and leaves it as it is
    pub PRINT_IR = ModulePass("PrintIR", 0);
    options {
        /// the title above the module
        header: String = "",
    }
    run move |module, cx| print(module, &header, cx)
}

fn print(module: &Module, header: &str, cx: &PassContext) -> Result<(), PassError> {
    let text = ModuleText::new(module, &PrintOptions::default());
    cx.print(|to| {
        let mut lines = header.lines();
        match lines.next() {
            Some(first) => writeln!(to, "// PrintIR: {first}")?,
            None => writeln!(to, "// PrintIR")?,
        }
        lines.try_for_each(|line| writeln!(to, "// {line}"))?;
        writeln!(to, "{}", text.text())
    })
}
