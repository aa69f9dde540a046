//! The table of `tests/deep.rs` is complete. Every public function of the crates that takes a
//! program, a part of one, or a text is run by an operation of [`anfora_testing::stress`], or its
//! documentation states a cost that does not depend on how deep a program is: a line such as
//! `Cost: one entry.`, with one of the costs in [`BOUNDED`].

use std::collections::{BTreeMap, BTreeSet};

use anfora_testing::stress::Operation;
use syn::visit::Visit;

use crate::sources::{Names, folder, is_conditional, is_public, read_sources};

const CRATES: [&str; 6] = ["ir", "visit", "manager", "report", "interp", "onnx"];

/// The types that may be deep or long, if a function takes them as a parameter, as `self`, or in a
/// bound.
const SUBJECTS: [&str; 31] = [
    "Attr",
    "AttrId",
    "AttrTable",
    "AttrsId",
    "Binding",
    "Body",
    "Bytes",
    "Context",
    "DimId",
    "Dims",
    "Editor",
    "Expr",
    "ExprId",
    "Function",
    "FunctionBuilder",
    "FunctionType",
    "Link",
    "Matcher",
    "Module",
    "ModuleView",
    "Pattern",
    "Source",
    "String",
    "Type",
    "TypeId",
    "Types",
    "ValueId",
    "Values",
    "VarId",
    "bytes",
    "str",
];

/// The costs, as the last words of documentation state them (`Cost: one entry.`), of functions that
/// do not descend into their arguments. They need no operation.
const BOUNDED: [(&str, &str); 8] = [
    ("one entry", "looks at or writes one entry of a table, or one field"),
    ("one node", "looks at or writes one node and its operands; of an ONNX graph, whose nesting protobuf limits"),
    ("one loop", "goes over a list, an iterator or a table once"),
    ("linear in the bytes", "goes over the bytes of a message once, whose nesting protobuf limits"),
    ("linear in the text", "the text is a name, a message or the value of an option, read or stored in one loop"),
    ("that of the analysis", "runs the analysis that it is given"),
    ("that of the kernel", "takes constants and attributes, as the row of an operator does"),
    ("that of the author's code", "is written by an author, and called by functions that operations run"),
];

/// A map from the last name of each function of some sources, public or not, to the names in its
/// block.
#[derive(Default)]
struct Calls(BTreeMap<String, BTreeSet<String>>);

impl Calls {
    fn add(&mut self, function: &syn::Ident, block: &syn::Block) {
        let mut names = Names::default();
        names.visit_block(block);
        self.0.entry(function.to_string()).or_default().extend(names.0);
    }

    /// Returns `names` and the names of the functions that can be reached from them. A name stands
    /// for all functions of that name.
    fn reachable(&self, names: impl IntoIterator<Item = String>) -> BTreeSet<String> {
        let mut work: Vec<String> = names.into_iter().collect();
        let mut reached: BTreeSet<String> = BTreeSet::new();
        while let Some(name) = work.pop() {
            if let Some(called) = self.0.get(&name).filter(|_| !reached.contains(&name)) {
                work.extend(called.iter().cloned());
            }
            reached.insert(name);
        }
        reached
    }
}

impl<'a> Visit<'a> for Calls {
    fn visit_item_mod(&mut self, module: &'a syn::ItemMod) {
        if !is_conditional(module) {
            syn::visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'a syn::ItemFn) {
        self.add(&function.sig.ident, &function.block);
    }

    fn visit_impl_item_fn(&mut self, function: &'a syn::ImplItemFn) {
        self.add(&function.sig.ident, &function.block);
    }

    fn visit_trait_item_fn(&mut self, function: &'a syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.add(&function.sig.ident, block);
        }
    }
}

/// The public functions of a crate that take a subject.
struct EntryPoints {
    krate: &'static str,
    /// The type of the `impl` that is being read.
    owner: Option<String>,
    /// The names of the functions, and the costs that their documentation states.
    found: BTreeMap<String, Option<String>>,
}

/// Returns the cost that the documentation of a function states.
fn stated_cost(attrs: &[syn::Attribute]) -> Option<String> {
    let lines = attrs.iter().filter_map(|attr| match &attr.meta {
        syn::Meta::NameValue(doc) if doc.path.is_ident("doc") => match &doc.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(line), .. }) => Some(line.value()),
            _ => None,
        },
        _ => None,
    });
    lines.filter_map(|line| Some(line.trim().strip_prefix("Cost: ")?.strip_suffix('.')?.to_string())).next()
}

impl EntryPoints {
    fn function(&mut self, attrs: &[syn::Attribute], visibility: &syn::Visibility, signature: &syn::Signature) {
        if !is_public(visibility) {
            return;
        }
        let mut names = Names::default();
        for input in &signature.inputs {
            match input {
                syn::FnArg::Receiver(_) => names.0.extend(self.owner.clone()),
                syn::FnArg::Typed(parameter) => names.visit_type(&parameter.ty),
            }
        }
        names.visit_generics(&signature.generics);
        if SUBJECTS.iter().any(|&subject| names.0.contains(subject)) {
            let owner = self.owner.iter().map(|owner| format!("{owner}::")).collect::<String>();
            self.found.insert(format!("{}::{owner}{}", self.krate, signature.ident), stated_cost(attrs));
        }
    }
}

impl<'a> Visit<'a> for EntryPoints {
    fn visit_item_mod(&mut self, module: &'a syn::ItemMod) {
        if !is_conditional(module) {
            syn::visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'a syn::ItemFn) {
        self.function(&function.attrs, &function.vis, &function.sig);
    }

    fn visit_item_impl(&mut self, item: &'a syn::ItemImpl) {
        // Methods of a trait are called through the trait.
        if item.trait_.is_some() {
            return;
        }
        if let syn::Type::Path(path) = &*item.self_ty {
            self.owner = path.path.segments.last().map(|s| s.ident.to_string());
        }
        syn::visit::visit_item_impl(self, item);
        self.owner = None;
    }

    fn visit_impl_item_fn(&mut self, function: &'a syn::ImplItemFn) {
        self.function(&function.attrs, &function.vis, &function.sig);
    }

    fn visit_item_trait(&mut self, item: &'a syn::ItemTrait) {
        if !is_public(&item.vis) || CALLBACKS.iter().any(|name| item.ident == name) {
            return;
        }
        self.owner = Some(item.ident.to_string());
        for member in &item.items {
            if let syn::TraitItem::Fn(function) = member {
                self.function(&function.attrs, &item.vis, &function.sig);
            }
        }
        self.owner = None;
    }
}

/// Traits that authors implement, and whose methods the walks and runs of the table call.
const CALLBACKS: [&str; 5] = ["BackwardSweep", "Instrument", "Mutator", "ValueMirror", "Visitor"];

/// Visits each file with two visitors.
struct Both<A, B>(A, B);

impl<'a, A: Visit<'a>, B: Visit<'a>> Visit<'a> for Both<A, B> {
    fn visit_file(&mut self, file: &'a syn::File) {
        self.0.visit_file(file);
        self.1.visit_file(file);
    }
}

/// Returns the entry points of the crates, each with its stated cost, and the functions that the
/// operations call, directly or indirectly.
fn entry_points_and_run() -> (BTreeMap<String, Option<String>>, BTreeSet<String>) {
    let mut entry_points = BTreeMap::new();
    let mut calls = Calls::default();
    for krate in CRATES {
        let mut visitors = Both(EntryPoints { krate, owner: None, found: BTreeMap::new() }, calls);
        read_sources(&folder(krate).join("src"), &mut visitors);
        let Both(mut found, with_crate) = visitors;
        entry_points.append(&mut found.found);
        calls = with_crate;
    }
    let mut operations = Calls::default();
    for part in ["testing/src/stress", "testing/src/programs"] {
        read_sources(&folder(part), &mut operations);
    }
    (entry_points, calls.reachable(operations.0.into_values().flatten()))
}

#[test]
fn every_entry_point_is_run_or_bounded() {
    let (entry_points, run) = entry_points_and_run();
    // The operations that run an entry point, or the cost that makes an operation unnecessary.
    let mut known: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut problems = Vec::new();
    let operations = Operation::all();
    for operation in &operations {
        for name in operation.covers() {
            known.entry(name).or_default().push(format!("the operation {}", operation.name()));
            let last = name.rsplit("::").next().unwrap_or(name);
            if !run.contains(last) {
                problems.push(format!("{name} is said to be run by {}, and is called nowhere there", operation.name()));
            }
        }
    }
    for (name, cost) in &entry_points {
        let Some(cost) = cost else { continue };
        match BOUNDED.iter().any(|(bounded, _)| bounded == cost) {
            true => known.entry(name).or_default().push(format!("it costs {cost}")),
            false => problems.push(format!("{name} costs {cost}, which is not in the table of costs")),
        }
    }
    for name in entry_points.keys() {
        match known.get(name.as_str()).map(Vec::as_slice) {
            None => problems.push(format!("{name} is run by no operation, and its documentation states no `Cost: …`")),
            Some([_]) => {}
            Some(several) => problems.push(format!("{name} is listed more than once: {}", several.join("; "))),
        }
    }
    for (name, by) in &known {
        if !entry_points.contains_key(*name) {
            problems.push(format!("{name} ({}) is no public function that takes a program", by.join("; ")));
        }
    }
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}
