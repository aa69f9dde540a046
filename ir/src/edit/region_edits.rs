//! Edits of dataflow regions, each as the body of a function of its own.

use rustc_hash::FxHashSet;

use super::editor::Editor;
use super::region_writer::RegionWriter;
use super::regions::{Region, Relink, free_variables, regions_of};
use super::retype::Retype;
use super::transplant::Transplant;
use crate::core::body::Body;
use crate::core::context::Context;
use crate::core::entity::{ExprId, SymbolId};
use crate::core::expr::{Expr, LetFlags, VarFlags, VarId};
use crate::core::function::Function;
use crate::report::diagnostic::Diagnostic;
use crate::report::diagnostics::{Diagnostics, IntoDiagnostics};
use crate::tables::dim::Dim;
use crate::walk::cursor::{Cursor, Step};

/// Edits each dataflow region of a function as the body of a function of its own, in program order,
/// so that any code for functions can edit a region too. A region in a branch or a function value
/// inside of another region is a part of the outer region.
///
/// `edit` receives the tables, the function of the region, and the outputs of the region: those of
/// its variables that are visible outside of it, in the order of their bindings. The parameters of
/// the function are the variables that the region uses and does not bind, the chain is the bindings
/// of the region, and the tail is a tuple of the outputs. The body has a journal. Everything else
/// is as in the function that the region is taken from, and must stay.
///
/// If `edit` changed the body, its chain replaces the region. An output that is not bound any more
/// is bound at the end of the region, if the tail has another atom in its place. If the type
/// of an output changed, the types of its users are inferred again after the last region.
///
/// Taking regions out and putting them back is linear in the body.
///
/// ```
/// use anfora_ir::{Diagnostics, Expr, Source, edit_regions, parse_module};
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
/// edit_regions(cx, function, |_, region, outputs| {
///     assert_eq!((region.body.params().len(), outputs.len()), (1, 1));
///     // Leaves %a out, and computes %b from %x.
///     let body = &mut region.body;
///     let Expr::Let { body: rest, .. } = body.expr(body.root()) else { return Ok(()) };
///     let Expr::Let { value, .. } = body.expr(rest) else { return Ok(()) };
///     let Some(operands) = body.expr(value).operand_list() else { return Ok(()) };
///     body.set_operand(operands, 0, body.params()[0].expr());
///     body.set_root(rest);
///     Ok::<(), Diagnostics>(())
/// })?;
/// assert!(!module.to_string().contains("%a"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// - Those of `edit`.
/// - If a region is ill-formed: it is part of itself, or a Let stands at two places.
/// - If `edit` replaced the body by another one, or changed the attributes or the stated result of
///   the function.
/// - If the chain binds an input, binds a variable twice, or binds a node that was overwritten and
///   is no variable any more.
/// - If the chain does not bind an output, or the output is not visible outside any more.
/// - If the region bound a symbolic dimension and the chain does not, unless the type of a
///   parameter of the outer function, or of an input of the region, names it.
/// - If the chain uses a variable that it neither binds nor has as a parameter.
/// - If an output has another type than before, and the type of one of its users cannot be
///   inferred.
///
/// Regions before the one with the error are edited already, and the types of the users of their
/// outputs are not inferred again: roll the body back.
pub fn edit_regions<E: From<Diagnostics>>(
    cx: &mut Context,
    function: &mut Function,
    mut edit: impl FnMut(&mut Context, &mut Function, &[VarId]) -> Result<(), E>,
) -> Result<(), E> {
    let given = symbols_of_params(cx, &function.body);
    let mut replacement = Replacement { relink: Relink::default(), retyped: Vec::new(), given };
    for region in regions_of(&function.body) {
        let part = take_out(cx, function, region);
        let mut part = part.ok_or_else(|| error("a dataflow region is part of itself"))?;
        edit(cx, &mut part.function, &part.outputs)?;
        replacement.put_back(cx, function, part)?;
    }
    Ok(replacement.end(cx, function)?)
}

fn error(message: impl Into<String>) -> Diagnostics {
    Diagnostic::error(message).into()
}

/// A dataflow region that was taken out of its function.
struct RegionPart {
    function: Function,
    outputs: Vec<VarId>,
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

/// The replacement of the regions of a function by their edited parts.
struct Replacement {
    relink: Relink,
    /// Variables that are visible outside of their regions and have another type now.
    retyped: Vec<VarId>,
    /// The symbolic dimensions in the types of the function's parameters.
    given: FxHashSet<SymbolId>,
}

impl Replacement {
    /// Replaces a region of the function by its part, if the part was edited.
    fn put_back(&mut self, cx: &mut Context, function: &mut Function, mut part: RegionPart) -> Result<(), Diagnostics> {
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

    /// Infers the types of the users again of outputs whose types changed.
    fn end(self, cx: &mut Context, function: &mut Function) -> Result<(), Diagnostics> {
        if self.retyped.is_empty() {
            return Ok(());
        }
        let body = &mut function.body;
        let mut retype = Retype::new(body);
        self.retyped.iter().for_each(|v| retype.changed(v.expr()));
        let root = body.root();
        let Err(error) = retype.sweep(cx, body, root) else { return Ok(()) };
        let binding = body.stop().and_then(|at| body.binding_name(cx, at)).map(str::to_string);
        let mut found = error.into_diagnostics().into_vec();
        for error in &mut found {
            error.message = format!("a user of an output whose type changed has no type: {}", error.message);
            error.binding = error.binding.take().or_else(|| binding.clone());
        }
        Err(found.into())
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
                return Err(error(mistake));
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
            // The tail uses this variable, so it became visible outside of the region. It is no
            // output, and is hidden again.
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

/// Returns the symbolic dimensions in the types of a body's parameters.
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
