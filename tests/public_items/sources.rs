//! Reads the sources of the crates, for tests that compare tables with them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::Visit;

/// The names in a type, a bound, a path or a block.
#[derive(Default)]
pub(crate) struct Names(pub(crate) BTreeSet<String>);

impl<'a> Visit<'a> for Names {
    fn visit_path_segment(&mut self, segment: &'a syn::PathSegment) {
        self.0.insert(segment.ident.to_string());
        syn::visit::visit_path_segment(self, segment);
    }

    fn visit_type_slice(&mut self, slice: &'a syn::TypeSlice) {
        if matches!(&*slice.elem, syn::Type::Path(p) if p.path.is_ident("u8")) {
            self.0.insert("bytes".to_string());
        }
        syn::visit::visit_type_slice(self, slice);
    }

    fn visit_expr_method_call(&mut self, call: &'a syn::ExprMethodCall) {
        self.0.insert(call.method.to_string());
        syn::visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, call: &'a syn::Macro) {
        for word in call.tokens.to_string().split(|c: char| !c.is_alphanumeric() && c != '_') {
            self.0.insert(word.to_string());
        }
    }
}

/// Returns true for `pub`, and false for `pub(crate)` and similar visibilities.
pub(crate) fn is_public(visibility: &syn::Visibility) -> bool {
    matches!(visibility, syn::Visibility::Public(_))
}

/// Returns true if a module is compiled under a condition, as tests are.
pub(crate) fn is_conditional(module: &syn::ItemMod) -> bool {
    module.attrs.iter().any(|a| a.path().is_ident("cfg"))
}

/// Visits the sources in a folder.
pub(crate) fn read_sources(folder: &Path, visitor: &mut impl for<'a> Visit<'a>) {
    for entry in fs::read_dir(folder).expect("the sources are there") {
        let path = entry.expect("the sources can be listed").path();
        if path.is_dir() {
            read_sources(&path, visitor);
        } else {
            let text = fs::read_to_string(&path).expect("a source is text");
            visitor.visit_file(&syn::parse_file(&text).expect("a source is Rust"));
        }
    }
}

/// Returns the path of a folder of the workspace.
pub(crate) fn folder(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}
