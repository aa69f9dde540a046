//! The text format: `.anf`.

pub(crate) mod extent;
mod lexer;
mod parser;
mod printer;
mod threads;

pub use extent::expr_extent;
pub(crate) use lexer::unescape;
pub use parser::sketches::{Sketch, SketchAttr, SketchNode, SketchParts, SketchReader, SketchValue, parse_sketch};
pub use parser::{MAX_ERRORS, parse_attr, parse_fragment, parse_module, parse_module_on, parse_type};
pub use printer::{
    Annotations, FunctionLine, ModuleText, PrintLiterals, PrintOptions, binding_label, line_name, print_function,
    print_module, signature_line, spelled_label, spelled_local, statement_line, write_module, write_module_on,
};
