//! The table of `tests/deep.rs` is complete: every public function of the crates that takes a program, a part of one, or a text is run by an operation of
//! [`anfora::stress`], or is listed here with the reason why it need not be.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anfora::stress::Operation;
use syn::visit::Visit;

const CRATES: [&str; 5] = ["ir", "visit", "manager", "interp", "onnx"];

/// What a function takes that may be deep or long: as a parameter, as `self`, or in a bound.
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

/// Functions that do not go down what they are given.
const EXEMPT: &[(&str, &[&str])] = &[
    (
        "looks at or writes one entry of a table, or one node and its operands",
        &[
            "interp::Values::as_tensor",
            "interp::Values::as_tuple",
            "interp::Values::get",
            "ir::AttrReader::bool",
            "ir::AttrReader::dtype",
            "ir::AttrReader::float",
            "ir::AttrReader::int",
            "ir::AttrReader::ints",
            "ir::AttrReader::need_bool",
            "ir::AttrReader::need_float",
            "ir::AttrReader::need_int",
            "ir::AttrReader::need_ints",
            "ir::AttrReader::need_str",
            "ir::AttrValue::intern",
            "ir::AttrValue::is_value_of",
            "ir::AttrReader::literal",
            "ir::AttrReader::raw",
            "ir::AttrReader::str",
            "ir::AttrReader::ty",
            "ir::AttrTable::empty",
            "ir::AttrTable::get",
            "ir::AttrTable::is_empty",
            "ir::AttrTable::len",
            "ir::AttrTable::list",
            "ir::AttrTable::list_count",
            "ir::Body::as_literal",
            "ir::Body::as_var",
            "ir::Body::capacity_bytes",
            "ir::Body::check_table",
            "ir::Body::end_watch",
            "ir::Body::expr",
            "ir::Body::generation",
            "ir::Body::global",
            "ir::Body::has_journal",
            "ir::Body::is_dataflow_var",
            "ir::Body::is_empty",
            "ir::Body::lambda",
            "ir::Body::lambda_count",
            "ir::Body::lambda_params",
            "ir::Body::lambda_symbols",
            "ir::Body::len",
            "ir::Body::literal",
            "ir::Body::literal_in_place",
            "ir::Body::meta",
            "ir::Body::new",
            "ir::Body::new_watch",
            "ir::Body::none",
            "ir::Body::op",
            "ir::Body::operand_count",
            "ir::Body::operand",
            "ir::Body::operands",
            "ir::Body::operands_of",
            "ir::Body::params",
            "ir::Body::push",
            "ir::Body::call_of",
            "ir::Body::is_splat",
            "ir::Body::note_stop",
            "ir::Body::note_remarks",
            "ir::Body::has_remarks",
            "ir::Body::take_remarks",
            "ir::Body::stop",
            "ir::Body::push_param",
            "ir::Body::push_var",
            "ir::Body::reserve",
            "ir::Body::root",
            "ir::Body::set_expr",
            "ir::Body::set_lambda",
            "ir::Body::set_let_body",
            "ir::Body::set_meta",
            "ir::Body::set_operand",
            "ir::Body::set_root",
            "ir::Body::set_type",
            "ir::Body::shared_edits",
            "ir::Body::span",
            "ir::Body::ty",
            "ir::Body::type_of",
            "ir::Body::with_room",
            "ir::Body::var_name",
            "ir::Body::watch_links",
            "ir::BodyPurity::note_impure",
            "ir::Context::check_op_attrs",
            "ir::Diagnostics::in_source",
            "ir::OpCall::attrs",
            "ir::SignatureChange::result",
            "ir::TypeError::of_op",
            "ir::Context::constant_operand",
            "ir::Context::find_attr",
            "ir::Context::float_attr",
            "ir::Context::global_name",
            "ir::Context::int_attr",
            "ir::Context::literal_type",
            "ir::Dims::bound",
            "ir::Dims::constant",
            "ir::Dims::get",
            "ir::Dims::is_empty",
            "ir::Dims::len",
            "ir::Dims::new_symbol",
            "ir::Dims::symbol_count",
            "ir::Dims::symbol_name",
            "ir::Dims::unknown",
            "ir::Editor::call_named",
            "ir::Editor::call_opaque",
            "ir::Editor::global",
            "ir::Editor::let_",
            "ir::Editor::literal",
            "ir::Editor::literal_id",
            "ir::Editor::new",
            "ir::Editor::none",
            "ir::Editor::op",
            "ir::Editor::op_value",
            "ir::Editor::var",
            "ir::Expr::binds",
            "ir::Expr::is_atom",
            "ir::Expr::operand_list",
            "ir::Function::global",
            "ir::Function::global_symbol",
            "ir::Function::is_definition",
            "ir::Function::is_external",
            "ir::Function::new",
            "ir::Function::with_room",
            "ir::FunctionBuilder::begin_dataflow",
            "ir::FunctionBuilder::bind_var",
            "ir::FunctionBuilder::body",
            "ir::FunctionBuilder::cx",
            "ir::FunctionBuilder::declare_var",
            "ir::FunctionBuilder::editor",
            "ir::FunctionBuilder::global",
            "ir::FunctionBuilder::literal",
            "ir::FunctionBuilder::open_block",
            "ir::FunctionBuilder::result",
            "ir::FunctionBuilder::resume",
            "ir::FunctionBuilder::set_aside",
            "ir::FunctionBuilder::visibility",
            "ir::Module::attrs",
            "ir::Module::get",
            "ir::Module::get_all_mut",
            "ir::Module::get_mut",
            "ir::Module::get_pair",
            "ir::Module::has_edit",
            "ir::Module::name",
            "ir::Module::capacity_bytes",
            "ir::Module::order",
            "ir::Module::phase",
            "ir::Module::reserve",
            "ir::Module::set_attrs",
            "ir::Module::set_phase",
            "ir::Module::set_signature",
            "ir::Module::set_source",
            "ir::Module::source",
            "ir::OpDef::fusion_of",
            "ir::OpDef::has_known_extents",
            "ir::OpTable::opaque",
            "ir::Source::name",
            "ir::Source::text",
            "ir::Translation::ty",
            "ir::TensorType::new",
            "ir::Types::any",
            "ir::Types::as_function",
            "ir::Types::as_tensor",
            "ir::Types::as_tuple",
            "ir::Types::elements",
            "ir::Types::error",
            "ir::Types::get",
            "ir::Types::has_elements",
            "ir::Types::has_known_extents",
            "ir::Types::is_empty",
            "ir::Types::len",
            "ir::Types::scalar",
            "ir::Types::unit",
            "ir::Types::unranked",
            "ir::VarId::expr",
            "ir::VarId::index",
            "manager::BlockEdit::binding_name",
            "manager::BlockEdit::error_at",
            "manager::FunctionEdit::binding_name",
            "manager::ModuleView::purity",
            "visit::Link::holder",
            "visit::Rewriter::attrs",
            "visit::Rewriter::call",
            "visit::Rewriter::call_op",
            "visit::Rewriter::global",
            "visit::Rewriter::lambda",
            "visit::Rewriter::literal_of",
            "visit::Rewriter::number_like",
            "visit::Rewriter::op",
            "visit::Rewriter::op_like",
            "visit::Rewriter::op_of",
            "visit::Rewriter::op_with",
            "visit::Rewriter::proj",
            "visit::Rewriter::tuple",
            "visit::Rewriter::ty",
            "visit::Rewriter::value",
        ],
    ),
    (
        "gives or takes a list, an iterator or a table, in one loop over it",
        &[
            "ir::Context::absorb",
            "ir::Context::freeze",
            "ir::Context::overlay",
            "ir::Context::take_additions",
            "ir::Context::thaw",
            "ir::Function::translate",
            "ir::AttrTable::iter",
            "ir::Body::exprs",
            "ir::Body::global_leaves",
            "ir::Body::push_lambda",
            "ir::Body::push_operands",
            "ir::Body::set_lambda_symbols",
            "ir::Body::set_params",
            "ir::Body::side_table",
            "ir::Context::attr_ints",
            "ir::Context::ints_attr",
            "ir::Context::named_attrs",
            "ir::Element::read",
            "ir::FunctionBuilder::named_attrs",
            "ir::Literal::from_bytes",
            "ir::Literal::from_strings",
            "ir::Literal::splat_bytes",
            "ir::Module::functions",
            "ir::Module::remove",
            "ir::Module::set_order",
            "ir::Context::known_literal",
            "ir::Types::element_count",
            "ir::Types::iter",
            "ir::Types::static_tensor",
            "ir::Types::tensor",
            "ir::Types::with_elements",
            "ir::attr_depths",
            "visit::Captures::list",
            "visit::Copier::map_attrs",
            "visit::Copier::map_type",
            "visit::Copier::replace_symbol",
            "visit::Rewriter::list",
        ],
    ),
    (
        "the text is a name, a message or the value of an option, and is read or stored in one loop",
        &[
            "ir::AttrDef::flag",
            "ir::AttrDef::new",
            "ir::AttrDef::optional",
            "ir::AttrDef::required",
            "ir::Context::find_global",
            "ir::Context::global",
            "ir::Context::str_attr",
            "ir::Diagnostic::error",
            "ir::Diagnostic::in_function",
            "ir::Diagnostic::labelled",
            "ir::Diagnostic::new",
            "ir::Diagnostic::note",
            "ir::Diagnostic::on_binding",
            "ir::Diagnostic::remark",
            "ir::Diagnostic::warning",
            "ir::Diagnostic::with_help",
            "ir::Diagnostic::with_related",
            "ir::FunctionBuilder::symbol",
            "ir::KernelError::new",
            "ir::Module::add_named",
            "ir::Module::find",
            "ir::Module::rename",
            "ir::Names::find",
            "ir::Names::intern",
            "ir::OpDef::new",
            "ir::OpRegistry::declare_opaque",
            "ir::OpRegistry::declare_opaque_with",
            "ir::OpRegistry::find",
            "ir::OpTable::find",
            "ir::OpTable::resolve",
            "ir::Source::new",
            "ir::TypeError::new",
            "ir::TypeError::operand",
            "ir::TypeError::with_help",
            "interp::Draw::dim",
            "ir::did_you_mean",
            "manager::ConfigDef::bytes",
            "manager::ConfigDef::flag",
            "manager::ConfigDef::float",
            "manager::ConfigDef::int",
            "manager::ConfigDef::int_list",
            "manager::ConfigDef::parse",
            "manager::ConfigDef::text",
            "manager::ConfigDef::text_list",
            "manager::ConfigDef::words_list",
            "manager::DataflowBlockPass::breaking",
            "manager::DataflowBlockPass::establishing",
            "manager::DataflowBlockPass::needing",
            "manager::DataflowBlockPass::requiring",
            "manager::FunctionPass::breaking",
            "manager::FunctionPass::establishing",
            "manager::FunctionPass::needing",
            "manager::FunctionPass::requiring",
            "manager::ModulePass::breaking",
            "manager::ModulePass::establishing",
            "manager::ModulePass::needing",
            "manager::ModulePass::requiring",
            "manager::Options::get",
            "manager::Options::new",
            "manager::Options::set",
            "manager::Options::set_text",
            "manager::PassContext::config",
            "manager::PassContext::count",
            "manager::PassContext::is_disabled",
            "manager::PassContext::is_required",
            "manager::PassContextBuilder::config",
            "manager::PassContextBuilder::config_text",
            "manager::PassContextBuilder::disable",
            "manager::PassContextBuilder::knowing",
            "manager::PassContextBuilder::require",
            "manager::PassError::in_function",
            "manager::PassError::new",
            "manager::PassError::on_binding",
            "manager::PassError::with_help",
            "manager::PassError::with_message",
            "manager::PassInfo::breaking",
            "manager::PassInfo::establishing",
            "manager::PassInfo::needing",
            "manager::PassInfo::new",
            "manager::PassInfo::requiring",
            "manager::PassRegistry::config",
            "manager::PassRegistry::contains",
            "manager::PassRegistry::establishing",
            "manager::PassRegistry::make",
            "manager::PassRegistry::property",
            "manager::PassRegistry::register_megapass",
            "manager::PassRegistry::register_pass",
            "manager::PassRegistry::register_pipeline",
            "manager::PhaseEntry::holding",
            "manager::PhaseEntry::new",
            "manager::PrintIr::functions",
            "manager::Property::excluding",
            "manager::Property::new",
            "manager::Remarks::of_passes",
            "manager::Statistics::get",
            "manager::Typed::option",
            "manager::Typed::option_in",
            "manager::UnknownName::new",
            "manager::doc_line",
            "manager::option_key",
            "manager::option_of_words",
            "manager::read_option",
            "manager::read_word",
            "onnx::DataFiles::read",
            "onnx::ExternalData::new",
            "onnx::file_dimensions",
            "onnx::KeptNodes::are_calls_of",
        ],
    ),
    (
        "gives or compares numbers that tell states of a program apart, in one loop over the functions at most",
        &[
            "ir::Body::may_go_back_to",
            "ir::Body::stamp",
            "ir::Function::stamp",
            "ir::Module::edit_depth",
            "ir::Module::revision",
            "ir::Module::stamp",
            "ir::ModuleStamp::is_of",
        ],
    ),
    (
        "runs the analysis that it is given",
        &["manager::Analyses::of_body", "manager::Analyses::of_function", "manager::Analyses::of_module"],
    ),
    ("takes what an operator's row takes: constants and their attributes", &["interp::evaluate_op"]),
    (
        "is written by an author, and called by what the table has",
        &[
            "manager::FunctionAnalysis::run",
            "manager::Pass::run",
            "visit::ExprFunctor::visit_call",
            "visit::ExprFunctor::visit_call_op",
            "visit::ExprFunctor::visit_global",
            "visit::ExprFunctor::visit_if",
            "visit::ExprFunctor::visit_lambda",
            "visit::ExprFunctor::visit_let",
            "visit::ExprFunctor::visit_literal",
            "visit::ExprFunctor::visit_none",
            "visit::ExprFunctor::visit_op",
            "visit::ExprFunctor::visit_proj",
            "visit::ExprFunctor::visit_tuple",
            "visit::ExprFunctor::visit_var",
        ],
    ),
    (
        "is given one node of an ONNX graph, whose nesting protobuf limits",
        &[
            "onnx::Conversion::attributes",
            "onnx::Conversion::carried",
            "onnx::Conversion::domain",
            "onnx::Conversion::new",
            "onnx::Conversion::same",
            "onnx::Kept::because",
            "onnx::Kept::misfit",
            "onnx::NodeExport::emit",
            "onnx::NodeExport::step",
            "onnx::NodeImport::attribute",
            "onnx::NodeImport::call",
            "onnx::NodeImport::float",
            "onnx::NodeImport::int",
            "onnx::NodeImport::ints",
            "onnx::NodeImport::needed",
            "onnx::NodeImport::step",
            "onnx::NodeImport::str",
            "onnx::NodeImport::unknown_value",
            "onnx::check",
            "onnx::check_tensor",
            "onnx::float_attribute",
            "onnx::floats_attribute",
            "onnx::int_attribute",
            "onnx::ints_attribute",
            "onnx::read_tensor",
            "onnx::str_attribute",
            "onnx::strs_attribute",
            "onnx::tensor_attribute",
        ],
    ),
];

/// The names in a type, a bound, a path or a block.
#[derive(Default)]
struct Names(BTreeSet<String>);

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

/// For each function of some sources, public or not, by its last name: the names in its block.
#[derive(Default)]
struct Calls(BTreeMap<String, BTreeSet<String>>);

impl Calls {
    fn add(&mut self, function: &syn::Ident, block: &syn::Block) {
        let mut names = Names::default();
        names.visit_block(block);
        self.0.entry(function.to_string()).or_default().extend(names.0);
    }

    /// The names of functions that can be reached from `names`, with these. A name stands for all functions of that name.
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

fn is_conditional(module: &syn::ItemMod) -> bool {
    module.attrs.iter().any(|a| a.path().is_ident("cfg"))
}

/// The public functions of a crate that take a subject.
struct EntryPoints {
    krate: &'static str,
    /// The type of the `impl` that is being read.
    owner: Option<String>,
    found: BTreeSet<String>,
}

impl EntryPoints {
    fn function(&mut self, visibility: &syn::Visibility, signature: &syn::Signature) {
        if !matches!(visibility, syn::Visibility::Public(_)) {
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
            self.found.insert(format!("{}::{owner}{}", self.krate, signature.ident));
        }
    }
}

/// Reads all sources of a folder.
fn read_sources(folder: &Path, visitor: &mut impl for<'a> Visit<'a>) {
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

fn folder(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

impl<'a> Visit<'a> for EntryPoints {
    fn visit_item_mod(&mut self, module: &'a syn::ItemMod) {
        if !is_conditional(module) {
            syn::visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'a syn::ItemFn) {
        self.function(&function.vis, &function.sig);
    }

    fn visit_item_impl(&mut self, item: &'a syn::ItemImpl) {
        // What a trait asks for is called through the trait.
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
        self.function(&function.vis, &function.sig);
    }

    fn visit_item_trait(&mut self, item: &'a syn::ItemTrait) {
        if !matches!(item.vis, syn::Visibility::Public(_)) || CALLBACKS.iter().any(|name| item.ident == name) {
            return;
        }
        self.owner = Some(item.ident.to_string());
        for member in &item.items {
            if let syn::TraitItem::Fn(function) = member {
                self.function(&item.vis, &function.sig);
            }
        }
        self.owner = None;
    }
}

/// Traits that authors implement, and that the walks and runs of the table call.
const CALLBACKS: [&str; 4] = ["ExprRewriter", "Instrument", "Mutator", "Visitor"];

fn entry_points() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for krate in CRATES {
        let mut found = EntryPoints { krate, owner: None, found: BTreeSet::new() };
        read_sources(&folder(krate).join("src"), &mut found);
        all.append(&mut found.found);
    }
    all
}

/// The functions that are called, at some remove, by what the operations run.
fn run_by_operations() -> BTreeSet<String> {
    let mut calls = Calls::default();
    let mut operations = Calls::default();
    for krate in CRATES {
        read_sources(&folder(krate).join("src"), &mut calls);
    }
    for part in ["src/stress", "src/programs"] {
        read_sources(&folder(part), &mut operations);
    }
    calls.reachable(operations.0.into_values().flatten())
}

#[test]
fn every_entry_point_is_run_or_exempt() {
    let entry_points = entry_points();
    // Who runs it, or why nobody does.
    let mut known: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut problems = Vec::new();
    let operations = Operation::all();
    let run = run_by_operations();
    for operation in &operations {
        for name in operation.covers() {
            known.entry(name).or_default().push(format!("the operation {}", operation.name()));
            let last = name.rsplit("::").next().unwrap_or(name);
            if !run.contains(last) {
                problems.push(format!("{name} is said to be run by {}, and is called nowhere there", operation.name()));
            }
        }
    }
    for (reason, names) in EXEMPT {
        for name in *names {
            known.entry(name).or_default().push(format!("exempt: {reason}"));
        }
    }
    for name in &entry_points {
        match known.get(name.as_str()).map(Vec::as_slice) {
            None => problems.push(format!("{name} is run by no operation, and not exempt")),
            Some([_]) => {}
            Some(several) => problems.push(format!("{name} is listed more than once: {}", several.join("; "))),
        }
    }
    for (name, by) in &known {
        if !entry_points.contains(*name) {
            problems.push(format!("{name} ({}) is no public function that takes a program", by.join("; ")));
        }
    }
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}
