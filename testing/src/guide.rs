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
/// If the text is not a program. The error describes the mistake.
pub fn parse(text: &str) -> Result<Module, Box<dyn Error>> {
    Ok(parse_module(Source::new("guide.anf", text), anfora_ops::standard())?)
}

/// Edits `@main` of a program with the standard operators, verifies the program, and returns its
/// text.
///
/// ```
/// use anfora_testing::guide::edited;
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
            /// [`check_pass`]: fn@anfora::check::check_pass
            /// [`PassCheck`]: anfora::check::PassCheck
            /// [`same_meaning`]: anfora::check::same_meaning
            /// [`IntoDiagnostics`]: anfora::ir::IntoDiagnostics
            /// [`change_signature`]: anfora::ir::change_signature
            /// [`change_signatures`]: anfora::ir::change_signatures
            /// [`update_signatures`]: anfora::ir::update_signatures
            /// [`calls_of`]: anfora::ir::calls_of
            /// [`SignatureChange`]: anfora::ir::SignatureChange
            /// [`NewParameter::new`]: anfora::ir::NewParameter::new
            /// [expand]: crate::guide::expand
            /// [pass]: crate::guide::pass
            /// [phase]: crate::guide::phase
            /// [pipeline]: crate::guide::pipeline
            /// [instrument]: crate::guide::instrument
            /// [tvm-passes]: crate::guide::tvm_passes
            /// [`register_pass!`]: anfora::manager::register_pass
            /// [test]: crate::guide::test
            /// [debug]: crate::guide::debug
            /// [fast]: crate::guide::fast
            /// [raf-and-relay]: crate::guide::raf_and_relay
            /// [add-an-op]: crate::guide::add_an_op
            /// [`OpDef`]: anfora::ir::OpDef
            /// [`OpRegistry::register`]: anfora::ir::OpRegistry::register
            /// [`TypeCall`]: anfora::ir::TypeCall
            /// [`TypeCall::elements`]: anfora::ir::TypeCall::elements
            /// [`ElementsRule`]: anfora::ir::ElementsRule
            /// [`KernelCall`]: anfora::ir::KernelCall
            /// [`KernelError`]: anfora::ir::KernelError
            /// [`FusionPattern`]: anfora::ir::FusionPattern
            /// [`Splat`]: anfora::ir::Splat
            /// [`typing`]: anfora::ops::typing
            /// [`loops`]: anfora::ops::loops
            /// [`Conversion`]: anfora::onnx::convert::Conversion
            /// [`NodeImport`]: anfora::onnx::NodeImport
            /// [`NodeExport`]: anfora::onnx::NodeExport
            /// [`UnsupportedReason`]: anfora::onnx::UnsupportedReason
            /// [`chain`]: anfora::visit::chain
            /// [`bindings`]: anfora::visit::bindings
            /// [`post_order`]: anfora::visit::post_order
            /// [`program_order`]: anfora::visit::program_order
            /// [`for_each_expr`]: anfora::visit::for_each_expr
            /// [`Visitor`]: anfora::visit::Visitor
            /// [`Visit`]: anfora::visit::Visit
            /// [`walk`]: anfora::visit::walk
            /// [`free_variables`]: anfora::visit::free_variables
            /// [`bound_variables`]: anfora::visit::bound_variables
            /// [`DefUse`]: anfora::visit::DefUse
            /// [`link_counts`]: anfora::visit::link_counts
            /// [`Blocks`]: anfora::visit::Blocks
            /// [`PostDominators`]: anfora::visit::PostDominators
            /// [`PostDominatorTree`]: anfora::visit::PostDominatorTree
            /// [`FlowGraph`]: anfora::visit::FlowGraph
            /// [`Liveness`]: anfora::visit::Liveness
            /// [`CallGraph`]: anfora::visit::CallGraph
            /// [`Mutator`]: anfora::visit::Mutator
            /// [`mutate`]: anfora::visit::mutate
            /// [`post_order_rewrite`]: anfora::visit::post_order_rewrite
            /// [`Link`]: anfora::visit::Link
            /// [`LetList`]: anfora::visit::LetList
            /// [`substitute`]: anfora::visit::substitute
            /// [`copy_fresh`]: anfora::visit::copy_fresh
            /// [`Transplant`]: anfora::ir::Transplant
            /// [`splice_before`]: anfora::visit::splice_before
            /// [`ExprFunctor`]: anfora::visit::ExprFunctor
            /// [`Memo`]: anfora::visit::Memo
            /// [`expand_a_normal_form`]: anfora::visit::expand_a_normal_form
            /// [`expand_every_chain`]: anfora::visit::expand_every_chain
            /// [`Editor`]: anfora::ir::Editor
            /// [`Editor::op`]: anfora::ir::Editor::op
            /// [`FunctionBuilder`]: anfora::ir::FunctionBuilder
            /// [`Cursor`]: anfora::ir::Cursor
            /// [`Expr`]: anfora::ir::Expr
            /// [`Body`]: anfora::ir::Body
            /// [`Purity`]: anfora::ir::Purity
            /// [`BodyPurity`]: anfora::ir::BodyPurity
            /// [`Context`]: anfora::ir::Context
            /// [`SideTable`]: anfora::ir::SideTable
            /// [`Scratch`]: anfora::ir::Scratch
            /// [`IdSet`]: anfora::ir::IdSet
            /// [`FunctionPass`]: anfora::manager::FunctionPass
            /// [`ModulePass`]: anfora::manager::ModulePass
            /// [`PassContext`]: anfora::manager::PassContext
            /// [`PassRegistry`]: anfora::manager::PassRegistry
            /// [`Instrument`]: anfora::manager::Instrument
            /// [`CheckMeaning`]: anfora::passes::CheckMeaning
            /// [`Matcher`]: anfora::visit::pattern::Matcher
            /// [`Shape`]: crate::programs::Shape
            /// [`on_stack`]: crate::on_stack
            /// [`Interpreter`]: anfora::interp::Interpreter
            ///
            $(#[doc = $page])+
            pub mod $name {}
        )+
    };
}

pages! {
    #[doc = include_str!("../../docs/guide/README.md")]
    start;
    #[doc = include_str!("../../docs/guide/build.md")]
    build;
    #[doc = include_str!("../../docs/guide/look.md")]
    look;
    #[doc = include_str!("../../docs/guide/rewrite.md")]
    rewrite;
    #[doc = include_str!("../../docs/guide/patterns.md")]
    patterns;
    #[doc = include_str!("../../docs/guide/edit.md")]
    edit;
    #[doc = include_str!("../../docs/guide/signature.md")]
    signature;
    #[doc = include_str!("../../docs/guide/expand.md")]
    expand;
    #[doc = include_str!("../../docs/guide/pass.md")]
    pass;
    #[doc = include_str!("../../docs/guide/phase.md")]
    phase;
    #[doc = include_str!("../../docs/guide/pipeline.md")]
    pipeline;
    #[doc = include_str!("../../docs/guide/instrument.md")]
    instrument;
    #[doc = include_str!("../../docs/guide/test.md")]
    test;
    #[doc = include_str!("../../docs/guide/debug.md")]
    debug;
    #[doc = include_str!("../../docs/guide/fast.md")]
    fast;
    #[doc = include_str!("../../docs/guide/tvm-passes.md")]
    tvm_passes;
    #[doc = include_str!("../../docs/guide/raf-and-relay.md")]
    raf_and_relay;
    #[doc = include_str!("../../docs/add-an-op.md")]
    add_an_op;
}
