//! The guide for authors of passes and operators: the pages of `docs/guide` and
//! `docs/add-an-op.md`, whose code runs as tests of this module.
//!
//! Each page is a module here; begin with [`start`]. [`parse`] and [`edited`] keep the examples
//! short.

#![allow(clippy::test_attr_in_doctest, reason = "the test on the first page runs in tests/guide.rs")]

use std::error::Error;

use anfora_ir::{
    Editor, Module, RenderOptions, Source, parse_module, render_module_diagnostics, signature_type, verify_module,
};

/// Parses a text with the standard operators, for examples. Like [`parse_module`], but with all
/// errors in one.
///
/// # Errors
/// If the text is not a program. The error shows what is wrong.
pub fn parse(text: &str) -> Result<Module, Box<dyn Error>> {
    Ok(parse_module(Source::new("guide.anf", text), anfora_ops::standard())?)
}

/// Edits `@main` of a program with the standard operators, verifies the program, and returns its
/// text.
///
/// ```
/// use anfora::guide::edited;
///
/// let after = edited("def @main(%x: float32) { let %y = exp(%x); %y }", |editor| {
///     editor.body.set_root(editor.body.params()[0].expr());
///     Ok(())
/// })?;
/// assert_eq!(after, "def @main(%x: Tensor[(), float32]) -> Tensor[(), float32] {\n  %x\n}\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the text is not a program with a `@main`, the edit fails, or its result does not verify.
pub fn edited(
    text: &str,
    edit: impl FnOnce(&mut Editor<'_>) -> Result<(), Box<dyn Error>>,
) -> Result<String, Box<dyn Error>> {
    let mut module = parse(text)?;
    let (function, cx) = module.find("main").and_then(|key| module.get_mut(key)).ok_or("there is no @main")?;
    edit(&mut Editor::new(cx, &mut function.body))?;
    // The edit may have made the type of the result more specific, so an inferred signature is
    // updated, as after a pass.
    if let (Some(global), None) = (function.global(), function.ret) {
        let body = &function.body;
        let params: Vec<_> = body.params().iter().map(|p| body.ty(p.expr())).collect();
        let signature = signature_type(cx, &params, body.type_of(body.root()));
        module.set_signature(global, signature);
    }
    match verify_module(&module) {
        Ok(_) => Ok(module.to_text()),
        Err(errors) => Err(render_module_diagnostics(&errors, &module, &RenderOptions::default()).into()),
    }
}

/// Declares the pages, with their links to each other as links to items. In the folder itself,
/// these links lead to files.
macro_rules! pages {
    ($($(#[doc = $page:expr])+ $name:ident;)+) => {
        $(
            /// [build]: crate::guide::build
            /// [look]: crate::guide::look
            /// [rewrite]: crate::guide::rewrite
            /// [patterns]: crate::guide::patterns
            /// [edit]: crate::guide::edit
            /// [signature]: crate::guide::signature
            /// [`check_pass`]: fn@crate::check::check_pass
            /// [`PassCheck`]: crate::check::PassCheck
            /// [`same_meaning`]: crate::check::same_meaning
            /// [`IntoDiagnostics`]: crate::ir::IntoDiagnostics
            /// [`change_signature`]: crate::ir::change_signature
            /// [`change_signatures`]: crate::ir::change_signatures
            /// [`update_signatures`]: crate::ir::update_signatures
            /// [`calls_of`]: crate::ir::calls_of
            /// [`SignatureChange`]: crate::ir::SignatureChange
            /// [`NewParameter::new`]: crate::ir::NewParameter::new
            /// [expand]: crate::guide::expand
            /// [pass]: crate::guide::pass
            /// [phase]: crate::guide::phase
            /// [pipeline]: crate::guide::pipeline
            /// [instrument]: crate::guide::instrument
            /// [tvm-passes]: crate::guide::tvm_passes
            /// [`register_pass!`]: crate::manager::register_pass
            /// [test]: crate::guide::test
            /// [debug]: crate::guide::debug
            /// [fast]: crate::guide::fast
            /// [raf-and-relay]: crate::guide::raf_and_relay
            /// [add-an-op]: crate::guide::add_an_op
            /// [`OpDef`]: crate::ir::OpDef
            /// [`OpRegistry::register`]: crate::ir::OpRegistry::register
            /// [`TypeCall`]: crate::ir::TypeCall
            /// [`TypeCall::elements`]: crate::ir::TypeCall::elements
            /// [`ElementsRule`]: crate::ir::ElementsRule
            /// [`KernelCall`]: crate::ir::KernelCall
            /// [`KernelError`]: crate::ir::KernelError
            /// [`FusionPattern`]: crate::ir::FusionPattern
            /// [`Splat`]: crate::ir::Splat
            /// [`typing`]: crate::ops::typing
            /// [`loops`]: crate::ops::loops
            /// [`Conversion`]: crate::onnx::convert::Conversion
            /// [`NodeImport`]: crate::onnx::NodeImport
            /// [`NodeExport`]: crate::onnx::NodeExport
            /// [`Kept`]: crate::onnx::Kept
            /// [`chain`]: crate::visit::chain
            /// [`bindings`]: crate::visit::bindings
            /// [`post_order`]: crate::visit::post_order
            /// [`program_order`]: crate::visit::program_order
            /// [`for_each_expr`]: crate::visit::for_each_expr
            /// [`Visitor`]: crate::visit::Visitor
            /// [`Visit`]: crate::visit::Visit
            /// [`walk`]: crate::visit::walk
            /// [`free_variables`]: crate::visit::free_variables
            /// [`bound_variables`]: crate::visit::bound_variables
            /// [`DefUse`]: crate::visit::DefUse
            /// [`link_counts`]: crate::visit::link_counts
            /// [`Blocks`]: crate::visit::Blocks
            /// [`PostDominators`]: crate::visit::PostDominators
            /// [`PostDominatorTree`]: crate::visit::PostDominatorTree
            /// [`FlowGraph`]: crate::visit::FlowGraph
            /// [`Liveness`]: crate::visit::Liveness
            /// [`CallGraph`]: crate::visit::CallGraph
            /// [`Mutator`]: crate::visit::Mutator
            /// [`mutate`]: crate::visit::mutate
            /// [`post_order_rewrite`]: crate::visit::post_order_rewrite
            /// [`Link`]: crate::visit::Link
            /// [`LetList`]: crate::visit::LetList
            /// [`substitute`]: crate::visit::substitute
            /// [`copy_fresh`]: crate::visit::copy_fresh
            /// [`Transplant`]: crate::ir::Transplant
            /// [`splice_before`]: crate::visit::splice_before
            /// [`ExprFunctor`]: crate::visit::ExprFunctor
            /// [`Memo`]: crate::visit::Memo
            /// [`expand_a_normal_form`]: crate::visit::expand_a_normal_form
            /// [`expand_every_chain`]: crate::visit::expand_every_chain
            /// [`Editor`]: crate::ir::Editor
            /// [`Editor::op`]: crate::ir::Editor::op
            /// [`FunctionBuilder`]: crate::ir::FunctionBuilder
            /// [`Cursor`]: crate::ir::Cursor
            /// [`Expr`]: crate::ir::Expr
            /// [`Body`]: crate::ir::Body
            /// [`Purity`]: crate::ir::Purity
            /// [`BodyPurity`]: crate::ir::BodyPurity
            /// [`Context`]: crate::ir::Context
            /// [`SideTable`]: crate::ir::SideTable
            /// [`Scratch`]: crate::ir::Scratch
            /// [`IdSet`]: crate::ir::IdSet
            /// [`FunctionPass`]: crate::manager::FunctionPass
            /// [`ModulePass`]: crate::manager::ModulePass
            /// [`PassContext`]: crate::manager::PassContext
            /// [`PassRegistry`]: crate::manager::PassRegistry
            /// [`Instrument`]: crate::manager::Instrument
            /// [`CheckMeaning`]: crate::passes::CheckMeaning
            /// [`Matcher`]: crate::visit::pattern::Matcher
            /// [`Shape`]: crate::programs::Shape
            /// [`on_stack`]: crate::stress::on_stack
            /// [`Interpreter`]: crate::interp::Interpreter
            ///
            $(#[doc = $page])+
            pub mod $name {}
        )+
    };
}

pages! {
    #[doc = include_str!("../docs/guide/README.md")]
    start;
    #[doc = include_str!("../docs/guide/build.md")]
    build;
    #[doc = include_str!("../docs/guide/look.md")]
    look;
    #[doc = include_str!("../docs/guide/rewrite.md")]
    rewrite;
    #[doc = include_str!("../docs/guide/patterns.md")]
    patterns;
    #[doc = include_str!("../docs/guide/edit.md")]
    edit;
    #[doc = include_str!("../docs/guide/signature.md")]
    signature;
    #[doc = include_str!("../docs/guide/expand.md")]
    expand;
    #[doc = include_str!("../docs/guide/pass.md")]
    pass;
    #[doc = include_str!("../docs/guide/phase.md")]
    phase;
    #[doc = include_str!("../docs/guide/pipeline.md")]
    pipeline;
    #[doc = include_str!("../docs/guide/instrument.md")]
    instrument;
    #[doc = include_str!("../docs/guide/test.md")]
    test;
    #[doc = include_str!("../docs/guide/debug.md")]
    debug;
    #[doc = include_str!("../docs/guide/fast.md")]
    fast;
    #[doc = include_str!("../docs/guide/tvm-passes.md")]
    tvm_passes;
    #[doc = include_str!("../docs/guide/raf-and-relay.md")]
    raf_and_relay;
    #[doc = include_str!("../docs/add-an-op.md")]
    add_an_op;
}
