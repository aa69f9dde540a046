//! Edits of dataflow regions, each as the body of a function of its own.

use rustc_hash::FxHashSet;

use super::editor::Editor;
use super::region_writer::RegionWriter;
use super::regions::{Region, Relink, free_variables, regions_of};
use super::retype::{Retype, RetypeError};
use super::transplant::Transplant;
use crate::core::body::Body;
use crate::core::context::Context;
use crate::core::entity::{ExprId, SymbolId};
use crate::core::expr::{Expr, LetFlags, VarFlags, VarId};
use crate::core::function::Function;
use crate::report::diagnostic::Diagnostic;
use crate::report::diagnostics::Diagnostics;
use crate::tables::dim::Dim;
use crate::walk::cursor::{Cursor, Step};

/// The edits of the dataflow regions of a function, one region after the other.
///
/// [`take`](RegionEdits::take) gives each region as the body of a function of its own, so that any
/// code for functions works on a region too. [`put_back`](RegionEdits::put_back) replaces the
/// region by the edited body, and [`end`](RegionEdits::end) infers types again.
///
/// ```
/// use anfora_ir::{Expr, RegionEdits, Source, parse_module};
///
/// let text = "def @f(%x: Tensor[(8), float32]) {
///   dataflow {
///     let %a = add(%x, %x);
///     let %b = negative(%a);
///     output(%b)
///   }
///   %b
/// }";
/// let mut module = parse_module(Source::new("example", text), anfora_ops::standard())?;
/// let key = module.order()[0];
/// let (function, cx) = module.get_mut(key).expect("it was just read");
/// let mut regions = RegionEdits::new(cx, function);
/// while let Some(part) = regions.take(cx, function) {
///     let mut part = part?;
///     assert_eq!((part.function.body.params().len(), part.outputs.len()), (1, 1));
///     // Leaves %a out, and computes %b from %x.
///     let body = &mut part.function.body;
///     let Expr::Let { body: rest, .. } = body.expr(body.root()) else { continue };
///     let Expr::Let { value, .. } = body.expr(rest) else { continue };
///     let Some(operands) = body.expr(value).operand_list() else { continue };
///     body.set_operand(operands, 0, body.params()[0].expr());
///     body.set_root(rest);
///     regions.put_back(cx, function, part)?;
/// }
/// regions.end(cx, function)?;
/// assert!(!module.to_string().contains("%a"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RegionEdits {
    regions: std::vec::IntoIter<Region>,
    relink: Relink,
    /// Variables that are visible outside of their regions and have another type now.
    retyped: Vec<VarId>,
    /// The symbolic dimensions that the types of the parameters of the function name.
    given: FxHashSet<SymbolId>,
}

/// A dataflow region as the body of a function of its own.
///
/// The parameters of the body are the variables that the region uses and does not bind, the chain
/// is the bindings of the region, and the tail is a tuple of the outputs of the region, in the
/// order of their bindings. The body has a journal.
pub struct RegionPart {
    /// The function with the body of the region. Everything else is as in the function that the
    /// region is taken from.
    pub function: Function,
    /// The variables of the body that are bound in the region and visible outside of it, in the
    /// order of their bindings.
    pub outputs: Vec<VarId>,
    region: Region,
    /// Variables of the outer function that are parameters of the part or bound in its chain, each
    /// with its counterpart in the part.
    vars: Vec<(VarId, VarId)>,
    /// The number of leading entries of `vars` that are parameters.
    inputs: usize,
    /// The symbolic dimensions that the region binds.
    symbols: Vec<SymbolId>,
    /// The generation of the body when it was taken out.
    generation: u32,
}

impl RegionEdits {
    /// Begins with the regions of a function. A region in a branch or a function value inside of
    /// another region is a part of the outer one. Linear in the body.
    pub fn new(cx: &Context, function: &Function) -> RegionEdits {
        RegionEdits {
            regions: regions_of(&function.body).into_iter(),
            relink: Relink::default(),
            retyped: Vec::new(),
            given: symbols_of_params(cx, &function.body),
        }
    }

    /// Returns the next region in program order, as the body of a function of its own; `None` after
    /// the last. Linear in the region.
    ///
    /// # Errors
    /// If the region is part of itself.
    pub fn take(&mut self, cx: &mut Context, function: &Function) -> Option<Result<RegionPart, Diagnostics>> {
        let region = self.regions.next()?;
        let part = take_out(cx, function, region);
        Some(part.ok_or_else(|| Diagnostic::error("a dataflow region is part of itself").into()))
    }

    /// Replaces a region of the function by its part, if the part was edited. If an output is not
    /// bound any more and the tail has another atom in its place, the output is bound to this atom
    /// at the end of the region. Linear in the region.
    ///
    /// # Errors
    /// If another body was put in the place of that of the part, if its function has other
    /// attributes or another signature, if its chain does not bind each output exactly once, binds
    /// an input, does not bind a symbolic dimension any more that the region bound and nothing
    /// around it names, or uses what it neither binds nor has as a parameter.
    pub fn put_back(
        &mut self,
        cx: &mut Context,
        function: &mut Function,
        mut part: RegionPart,
    ) -> Result<(), Diagnostics> {
        let body = &part.function.body;
        if body.generation() != part.generation || !body.has_journal() {
            let message = "another body was put in the place of that of a dataflow region";
            return Err(Diagnostic::error(message).with_help("edit the bindings of the region instead").into());
        }
        if !part.function.stamp().has_head_of(&function.stamp()) {
            let message = "the function of a dataflow region has other attributes, or another signature";
            let help = "edit the bindings of the region; a function pass may edit the rest of the function";
            return Err(Diagnostic::error(message).with_help(help).into());
        }
        if !body.is_edited() {
            return Ok(());
        }
        rebind_outputs(&mut Editor::new(cx, &mut part.function.body), &part.outputs);
        self.replace(cx, function, &part)
    }

    /// Infers the types of the users of outputs again, where put back outputs have other types.
    /// Linear in the body if there are any.
    ///
    /// # Errors
    /// If a user has no type.
    pub fn end(self, cx: &mut Context, function: &mut Function) -> Result<(), RetypeError> {
        if self.retyped.is_empty() {
            return Ok(());
        }
        let body = &mut function.body;
        let mut retype = Retype::new(body);
        self.retyped.iter().for_each(|v| retype.changed(v.expr()));
        let root = body.root();
        retype.sweep(cx, body, root).map(drop)
    }

    /// Replaces a region by its edited part.
    fn replace(&mut self, cx: &mut Context, function: &mut Function, part: &RegionPart) -> Result<(), Diagnostics> {
        let RegionPart { function: Function { body: new, .. }, region, vars, inputs, .. } = part;
        let first = function.body.binding_name(cx, region.first).map(str::to_string);
        let begins = match &first {
            Some(name) => format!("the dataflow region that begins at %{name}"),
            None => "a dataflow region".to_string(),
        };
        let given: FxHashSet<ExprId> = vars[..*inputs].iter().map(|(_, inside)| inside.expr()).collect();
        let symbols = part.symbols.iter().copied().filter(|s| !self.given.contains(s));
        let bound = bound_by(cx, &function.body, part, &given, symbols).map_err(|mistake| {
            let error = Diagnostic::error(format!("{begins} {mistake}"));
            first.into_iter().fold(error, Diagnostic::on_binding)
        })?;

        let chain: Vec<ExprId> = lets(new, new.root(), None).map(|(id, _)| id).collect();
        let mut transplant = Transplant::moving();
        vars.iter().for_each(|&(var, inside)| transplant.replace(inside.expr(), var.expr()));
        if let (Some(&first), Some(&last)) = (chain.first(), chain.last()) {
            let stray = match free_variables(new, [first, last]) {
                Ok(free) => free.into_iter().map(VarId::expr).find(|id| !given.contains(id)),
                Err(id) => Some(id),
            };
            if let Some(id) = stray {
                let what = shown(cx, new, id, "something");
                let mistake = format!("{begins} uses {what}, which it neither binds nor has as a parameter");
                return Err(Diagnostic::error(mistake).into());
            }
            transplant.bindings(&mut Editor::new(cx, &mut function.body), Some(new), [first, last]);
        }
        let body = &mut function.body;
        let copies: Vec<ExprId> = chain.iter().filter_map(|&id| transplant.copied(id)).collect();
        let mut writer = RegionWriter::default();
        writer.begin();
        copies.iter().for_each(|&id| writer.write(body, id));
        // Copies the names, flags and types of the variables themselves.
        for &(var, inside) in vars.iter().filter(|(_, inside)| bound.contains(&inside.expr())) {
            body.set_expr(var.expr(), new.expr(inside.expr()));
            if body.ty(var.expr()) != new.ty(inside.expr()) {
                body.set_type(var.expr(), new.ty(inside.expr()));
                // The types of users outside of the region are inferred again.
                if !new.is_dataflow_var(inside) {
                    self.retyped.push(var);
                }
            }
        }
        let ends = copies.first().zip(copies.last()).map(|(&first, &last)| [first, last]);
        self.relink.replace(body, region, ends);
        Ok(())
    }
}

impl RegionPart {
    /// Returns each output as a pair of a variable of the outer function and its counterpart in the
    /// part. `body` is the body of the outer function.
    fn output_pairs<'a>(&'a self, body: &'a Body) -> impl Iterator<Item = (VarId, VarId)> + 'a {
        self.vars[self.inputs..].iter().copied().filter(|&(var, _)| !body.is_dataflow_var(var))
    }
}

/// Returns the region as the body of a function of its own; `None` if the region is ill-formed.
fn take_out(cx: &mut Context, function: &Function, region: Region) -> Option<RegionPart> {
    let body = &function.body;
    let ends = [region.first, region.last];
    let free = free_variables(body, ends).ok()?;
    let mut part = Body::new(&cx.types);
    let mut editor = Editor::new(cx, &mut part);
    let mut transplant = Transplant::moving();
    let mut vars: Vec<(VarId, VarId)> =
        free.into_iter().map(|var| (var, transplant.var(&mut editor, Some(body), var))).collect();
    let inputs = vars.len();
    let [first, last] = transplant.bindings(&mut editor, Some(body), ends);
    vars.extend(lets(body, region.first, Some(region.last)).filter_map(|(_, var)| {
        let inside = transplant.copied(var.expr())?;
        Some((var, editor.body.as_var(inside)?))
    }));
    let (given, bound) = vars.split_at(inputs);
    let visible = bound.iter().filter(|(var, _)| !body.is_dataflow_var(*var));
    let outputs: Vec<VarId> = visible.map(|&(_, inside)| inside).collect();
    let fields: Vec<ExprId> = outputs.iter().map(|output| output.expr()).collect();
    let tail = editor.tuple(&fields);
    part.set_params(given.iter().map(|&(_, inside)| inside).collect());
    part.set_let_body(last, tail);
    part.set_root(first);
    let symbols = cast_symbols(cx, &part);
    part.begin_journal();
    let generation = part.generation();
    Some(RegionPart { function: function.part(part), outputs, region, vars, inputs, symbols, generation })
}

/// Appends a Let to the chain for each output that is not bound any more. Its value is the atom
/// that the tail has in place of the output.
fn rebind_outputs(editor: &mut Editor<'_>, outputs: &[VarId]) {
    let body = &*editor.body;
    let (mut bound, mut last) = (FxHashSet::default(), None);
    for (id, var) in lets(body, body.root(), None) {
        if !bound.insert(var) {
            return;
        }
        last = Some(id);
    }
    let tail = match last.map(|id| body.expr(id)) {
        Some(Expr::Let { body: rest, .. }) => rest,
        _ => body.root(),
    };
    let fields = body.operands_of(tail).to_vec();
    if fields.len() != outputs.len() {
        return;
    }
    let known: FxHashSet<VarId> = outputs.iter().copied().collect();
    let mut rest = tail;
    for (&var, &field) in outputs.iter().zip(&fields).rev() {
        if !bound.contains(&var) && field != var.expr() && editor.body.expr(field).is_atom() {
            // The use in the tail made this variable visible outside of the region, but it is no
            // output.
            if let Expr::Var { name, .. } = editor.body.expr(field)
                && editor.body.as_var(field).is_some_and(|v| bound.contains(&v) && !known.contains(&v))
            {
                editor.body.set_expr(field, Expr::Var { name, flags: VarFlags::DATAFLOW });
            }
            editor.body.set_type(var.expr(), editor.body.ty(field));
            rest = editor.let_(var, field, rest, LetFlags::DATAFLOW);
        }
    }
    match last {
        Some(last) => editor.body.set_let_body(last, rest),
        None => editor.body.set_root(rest),
    }
}

/// Returns the Lets of a chain with their variables, up to `last` or to the end.
fn lets(body: &Body, first: ExprId, last: Option<ExprId>) -> impl Iterator<Item = (ExprId, VarId)> + '_ {
    let mut next = Some(first);
    std::iter::from_fn(move || {
        let id = next?;
        let Expr::Let { var, body: rest, .. } = body.expr(id) else { return None };
        next = (Some(id) != last).then_some(rest);
        Some((id, var))
    })
}

/// Returns the variables that an edited part binds, or the reason why the part cannot replace its
/// region.
fn bound_by(
    cx: &Context,
    body: &Body,
    part: &RegionPart,
    given: &FxHashSet<ExprId>,
    symbols: impl IntoIterator<Item = SymbolId>,
) -> Result<FxHashSet<ExprId>, String> {
    let new = &part.function.body;
    let mut bound: FxHashSet<ExprId> = FxHashSet::default();
    for (_, var) in lets(new, new.root(), None) {
        let id = var.expr();
        if new.as_var(id).is_none() {
            return Err("binds what is not a variable any more".to_string());
        }
        if given.contains(&id) {
            return Err(format!("binds {}, which it is given", shown(cx, new, id, "something")));
        }
        if !bound.insert(id) {
            return Err(format!("binds {} twice", shown(cx, new, id, "something")));
        }
    }
    for (var, inside) in part.output_pairs(body) {
        let name = shown(cx, body, var.expr(), "");
        let output = if name.is_empty() { "an output".to_string() } else { format!("its output {name}") };
        if !bound.contains(&inside.expr()) {
            return Err(format!("does not bind {output} any more"));
        }
        if new.is_dataflow_var(inside) {
            return Err(format!("does not show {output} outside any more"));
        }
    }
    let bound_here: FxHashSet<SymbolId> = cast_symbols(cx, new).into_iter().collect();
    // Symbols in the types of the inputs were bound before the region.
    let bound_before = symbols_of_params(cx, new);
    match symbols.into_iter().find(|s| !bound_here.contains(s) && !bound_before.contains(s)) {
        Some(symbol) => {
            let name = cx.names.get(cx.types.dims.symbol_name(symbol));
            Err(format!("does not bind the dimension {name} any more"))
        }
        None => Ok(bound),
    }
}

/// Returns the name of a variable, or of the variable of a Let, with `%`. Returns `otherwise` if
/// the variable has no name.
fn shown(cx: &Context, body: &Body, id: ExprId, otherwise: &str) -> String {
    body.binding_name(cx, id).map_or_else(|| otherwise.to_string(), |name| format!("%{name}"))
}

/// Returns the symbolic dimensions that the `match_cast`s of a region bind, in the order of the
/// program. A `match_cast` binds a symbol that is a whole extent, or a whole element, of its type.
/// Branches and function values of the region are skipped.
fn cast_symbols(cx: &Context, part: &Body) -> Vec<SymbolId> {
    let mut found = Vec::new();
    let mut cursor = Cursor::new(part);
    while let Some(step) = cursor.next(part) {
        let id = match step {
            Step::Flat(id) => id,
            Step::Enter(id) if !part.expr(id).binds() => id,
            Step::Enter(_) => {
                // A symbol that is bound in a branch or function value is visible only there.
                cursor.skip();
                continue;
            }
            _ => continue,
        };
        if let Some(to) = cx.cast_type(part.expr(id)) {
            cx.types.for_each_binding_symbol(to, |s| found.push(s));
        }
    }
    found
}

/// Returns the symbolic dimensions that the types of the parameters of a body name.
fn symbols_of_params(cx: &Context, body: &Body) -> FxHashSet<SymbolId> {
    let mut found = FxHashSet::default();
    for param in body.params() {
        cx.types.for_each_symbol(body.ty(param.expr()), |d| {
            if let Dim::Symbol(s) = *cx.types.dims.get(d) {
                found.insert(s);
            }
        });
    }
    found
}
