//! # FuseOpsByPattern
//!
//! ```text
//! Notation   P a named pattern: an expression as on the left side of a rule; m the bindings of a
//!            match: those of the calls, tuples and projections that P describes; r the last one.
//! Needs      A-normal form.
//! Effect     …; let v = op(a, ..); …; let r = op(v, b, ..); rest
//!              =>  …; let r = @fused_op_op(a, b, ..); rest
//!                  def private @fused_op_op(%a: T, %b: T, .., Primitive=1, Composite="P") {
//!                    let v = op(a, ..); let r = op(v, b, ..); r
//!                  }
//!              if the bindings of m are in one block, are pure, and are used by m alone, except r.
//! Order      The patterns are tried one after another, each on all nodes from the last to the
//!            first. A node is in one match at most: the first that is found. So larger patterns
//!            come before their parts.
//! Options    patterns         the patterns, separated by commas. Each is the name of a standard
//!                             pattern, or `name=expression`. `standard`, the default, stands for
//!                             all standard patterns: attention, conv_bias_activation,
//!                             conv_activation, conv_bias, conv, matmul_bias_activation,
//!                             matmul_activation, matmul_bias, matmul, quantized_matmul,
//!                             layer_norm, gelu, silu.
//!            backend          the first part of the attribute Composite, "backend.name", so it has
//!                             no dot; none if empty.
//!            annotate_codegen if true, functions have the attribute Codegen="backend" too.
//!            bind_constants   if true, literals stay inside. Otherwise tensors of rank 1 and more
//!                             become parameters, except those that a type rule reads.
//! Function   Its parameters are in the order of first use. Equal matches of a pattern share a
//!            function, which the module may have had before. Symbolic dimensions are its own; a
//!            symbol that no parameter binds is bound by a further parameter, if a parameter of the
//!            old function binds it. Otherwise the match stays as it is.
//! Stays      Matches whose inner values are used elsewhere too: a function has one result.
//!            Functions that are primitive, as the results of this pass and of FuseOps are.
//! Cost       A walk, a look at each value for each pattern, and the steps of matching. Idempotent.
//!
//! before     def @f(%x: Tensor[(2, 3), float32], %w: Tensor[(3, 4), float32]) {
//!              let %p = matmul(%x, %w);
//!              nn.relu(%p)
//!            }
//! after      def @f(%x: Tensor[(2, 3), float32], %w: Tensor[(3, 4), float32]) {
//!              @fused_matmul_relu(%x, %w)
//!            }
//!            def private @fused_matmul_relu(%x: Tensor[(2, 3), float32],
//!                                           %w: Tensor[(3, 4), float32],
//!                                           Primitive=1, Composite="matmul_activation") {
//!              let %p = matmul(%x, %w);
//!              let %0 = nn.relu(%p);
//!              %0
//!            }
//! ```

mod matches;
mod patterns;

use anfora_ir::{
    Attr, AttrsId, Context, Editor, ExprId, Function, FunctionKey, LetFlags, Module, PRIMITIVE, Purity, VarFlags,
};
use anfora_manager::{PassError, register_pass};
use anfora_visit::{Binding, Mutator, RewriteError, Site, Slot, Verdict, mutate_function};
use rustc_hash::FxHashMap;

use self::matches::{Match, find_matches};
pub use self::patterns::{CompositePattern, standard_patterns};
use crate::outline::{NotOutlined, Outliner, PassedLiterals, SymbolBinders, names_of};

/// The attribute of a function that is a match of a pattern: the name of the pattern.
pub const COMPOSITE: &str = "Composite";

/// The attribute of a function for which a backend generates code: the name of the backend.
pub const CODEGEN: &str = "Codegen";

register_pass! {
    /// Moves operators that match named patterns into functions
    pub FUSE_OPS_BY_PATTERN = ModulePass("FuseOpsByPattern", 1).needing(["anf"]).breaking(["global-symbols"]);
    options {
        /// the patterns, separated by commas: names of standard patterns, or `name=expression`
        patterns: String = "standard",
        /// the first part of the names of composite functions
        backend: String = "",
        /// functions have the attribute `Codegen`
        annotate_codegen: bool = false,
        /// literals stay inside of functions
        bind_constants: bool = true,
    }
    run {
        let patterns = patterns::parse(&patterns)?;
        if annotate_codegen && backend.is_empty() {
            return Err(PassError::new("`annotate_codegen` needs a `backend`"));
        }
        if let Some((before, _)) = backend.split_once('.') {
            let error = PassError::new(format!("the name of a backend has no dot, but `{backend}` has one"));
            return Err(error.with_help(format!("a composite function is `BACKEND.PATTERN`; `backend={before}` has the name before the dot")));
        }
        move |module, cx| {
            let purity = cx.analyses().of_module(module, Purity::of_module);
            let partition = Partition { patterns: &patterns, backend: &backend, annotate_codegen, bind_constants };
            let done = fuse_ops_by_pattern(module, &purity, &partition)?;
            cx.count("matches", done.matches as u64);
            cx.count("functions", done.functions as u64);
            Ok(())
        }
    }
}

/// The patterns by which a module is partitioned, and the form of the functions.
#[derive(Copy, Clone, Debug)]
pub struct Partition<'a> {
    /// The patterns, in the order in which they are tried.
    pub patterns: &'a [CompositePattern],
    /// The first part of the attribute `Composite`; none if empty.
    pub backend: &'a str,
    /// True if functions have the attribute `Codegen`, with the backend.
    pub annotate_codegen: bool,
    /// True if literals stay inside of functions.
    pub bind_constants: bool,
}

/// The result of [`fuse_ops_by_pattern`].
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Partitioned {
    /// The number of matches that became calls.
    pub matches: usize,
    /// The number of new functions.
    pub functions: usize,
}

/// Moves the operators of a module that match patterns into functions.
///
/// # Errors
/// If a pattern is invalid, or if a function is not in A-normal form.
pub fn fuse_ops_by_pattern(
    module: &mut Module,
    purity: &Purity,
    partition: &Partition<'_>,
) -> Result<Partitioned, PassError> {
    let mut done = Partitioned::default();
    let names = names_of(module);
    let mut outliners: Vec<Option<Outliner>> = partition.patterns.iter().map(|_| None).collect();
    let is_partitioned = |(_, f): &(FunctionKey, &Function)| f.is_definition() && !f.is_primitive(&module.cx);
    let keys: Vec<FunctionKey> = module.functions().filter(is_partitioned).map(|(key, _)| key).collect();
    for key in keys {
        module.cx.rewrites.enter_function(Some(module.name(key)));
        let Some((function, cx)) = module.get_mut(key) else { continue };
        let found = find_matches(cx, function, partition.patterns, purity);
        let found = found.map_err(|error| error.in_function(module.name(key)))?;
        let Some((function, cx)) = module.get_mut(key) else { continue };
        if found.is_empty() {
            continue;
        }
        // Outline the matches of each pattern, and call the functions.
        let mut calls = CallsOfMatches::of(cx, function);
        for Match { pattern, members } in found {
            if !module.cx.rewrites.may_rewrite() {
                break;
            }
            let outliner = match &mut outliners[pattern] {
                Some(outliner) => outliner,
                none => {
                    let passed = if partition.bind_constants { PassedLiterals::None } else { PassedLiterals::Tensors };
                    let attrs = partition.attrs(&mut module.cx, pattern);
                    none.insert(Outliner::new(module, names.clone(), attrs, passed, 0))
                }
            };
            let Some((function, cx)) = module.get_mut(key) else { continue };
            let name = &partition.patterns[pattern].name;
            let [others @ .., last] = &*members else { continue };
            match calls.outline(cx, function, outliner, &members) {
                Ok(()) => {
                    done.matches += 1;
                    cx.rewrote(&function.body, last.at(), name);
                    others.iter().for_each(|member| cx.rewrote_also(&function.body, member.at(), name));
                }
                Err(why) => {
                    cx.nearly(&function.body, last.at(), name, || format!("the match cannot become a function: {why}"));
                }
            }
            done.functions += outliner.add_made(module);
        }
        // Put the calls in the places of the matches.
        let Some((function, cx)) = module.get_mut(key) else { continue };
        let called = mutate_function(cx, function, &mut calls);
        called.map_err(|error| PassError::from(error).in_function(module.name(key)))?;
    }
    Ok(done)
}

impl Partition<'_> {
    /// Returns the attributes of the functions of a pattern.
    fn attrs(&self, cx: &mut Context, pattern: usize) -> AttrsId {
        let name = &self.patterns[pattern].name;
        let composite = if self.backend.is_empty() { name.to_string() } else { format!("{}.{name}", self.backend) };
        let (one, composite) = (cx.attr(Attr::Int(1)), cx.str_attr(&composite));
        let mut attrs = vec![(PRIMITIVE, one), (COMPOSITE, composite)];
        if self.annotate_codegen {
            attrs.push((CODEGEN, cx.str_attr(self.backend)));
        }
        cx.named_attrs(&attrs)
    }
}

/// The calls that replace the matches of a function.
struct CallsOfMatches {
    binders: SymbolBinders,
    /// By value: the call that replaces it; `None` if its binding goes.
    by_value: FxHashMap<ExprId, Option<ExprId>>,
}

impl CallsOfMatches {
    /// Returns no calls in a function.
    fn of(cx: &Context, function: &Function) -> CallsOfMatches {
        let binders = SymbolBinders::of(cx, function);
        CallsOfMatches { binders, by_value: FxHashMap::default() }
    }

    /// Outlines a match, given its values in program order; there is at least one.
    ///
    /// # Errors
    /// If it cannot become a function, and stays.
    fn outline(
        &mut self,
        cx: &mut Context,
        function: &mut Function,
        outliner: &mut Outliner,
        members: &[matches::Member],
    ) -> Result<(), NotOutlined> {
        let mut editor = Editor::new(cx, &mut function.body);
        // The tail of a block has no binding. It gets one that the block does not have.
        let bindings: Vec<Binding> = members
            .iter()
            .filter_map(|member| {
                member.binding.or_else(|| {
                    let ty = editor.body.ty(member.value);
                    let var = editor.var(None, VarFlags::PLAIN, ty);
                    let link = editor.let_(var, member.value, var.expr(), LetFlags::PLAIN);
                    Binding::of(editor.body, link)
                })
            })
            .collect();
        let Some(&last) = bindings.last() else { return Ok(()) };
        let binder = |symbol| self.binders.binder(symbol);
        let outlined = outliner.outline(cx, &mut function.body, &bindings, binder)?;
        let call = outliner.call(cx, &mut function.body, outlined, last);
        self.by_value.extend(bindings.iter().map(|binding| (binding.value, None)));
        self.by_value.insert(last.value, Some(call));
        Ok(())
    }
}

impl Mutator for CallsOfMatches {
    type Error = RewriteError;
    const NODES: bool = false;
    const SEPARABLE: bool = false;

    fn rewrite_value(&mut self, _: &mut Site<'_>, _: Slot, value: ExprId) -> Result<Verdict, RewriteError> {
        Ok(match self.by_value.get(&value) {
            None => Verdict::Keep,
            Some(None) => Verdict::Drop,
            Some(&Some(call)) => Verdict::Value(call),
        })
    }
}
