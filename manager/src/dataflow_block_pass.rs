//! Passes over dataflow regions.

use anfora_ir::{
    Body, Context, Cursor, Dim, Editor, Expr, ExprId, Function, LetFlags, Module, RegionWriter, Retype, Step, SymbolId,
    Transplant, VarFlags, VarId,
};
use rustc_hash::FxHashSet;

use crate::context::PassContext;
use crate::error::{PassError, PassFailure};
use crate::function_edit::{FunctionEdit, ModuleView};
use crate::function_pass::FunctionPass;
use crate::info::{Declare, Outcome, PassInfo, PassKind};
use crate::messages::at_stop;
use crate::pass::Pass;
use crate::regions::{Region, Relink, free_variables, regions_of};

/// A pass over each dataflow region, in program order. A region in a branch or a function value
/// inside of another region is not given separately: it is a part of the outer region. Functions
/// marked `SkipOptimization` are skipped, because the pass is built on [`FunctionPass`].
///
/// The region is given as the body of a function of its own ([`FunctionEdit`]), so the pass cannot
/// touch anything outside of it. The parameters of that body are the variables that the region uses
/// and does not bind, the chain is the bindings of the region, and the tail is a tuple of the
/// region's outputs, in the order of their bindings. So any code for functions works on a region
/// too, in time and memory linear in the region. When the pass is done, the outputs are the
/// variables in [`FunctionEdit::outputs`]. If an output is not bound any more and the tail has
/// another atom in its place, the output is bound to this atom at the end of the region.
///
/// When the pass is done with a region that it changed, the new bindings replace the region. The
/// new bindings must still bind every output exactly once, and must not bind an input. A
/// `match_cast` in a binding of the old region may bind a symbolic dimension. The new bindings must
/// bind this dimension too, unless it occurs in the type of a parameter of the function or of an
/// input of the region. The flags of a new variable determine whether it is visible outside of the
/// region. If the type of an output became more specific, the types of its users are inferred
/// again. Replacing the body itself by another one is an error.
///
/// ```
/// use anfora_ir::{Cursor, Module, OpRegistry, Step};
/// use anfora_manager::{DataflowBlockPass, Pass, PassContext};
/// # use std::sync::Arc;
///
/// let pass = DataflowBlockPass::new("CountBindings", 0, |block, _module, cx| {
///     let mut cursor = Cursor::new(&block.function.body);
///     while let Some(step) = cursor.next(&block.function.body) {
///         cx.count("bindings", matches!(step, Step::Let(_)).into());
///     }
///     Ok(())
/// });
/// let mut module = Module::new(Arc::new(OpRegistry::new()));
/// pass.apply(&mut module, &PassContext::new())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DataflowBlockPass {
    function_pass: FunctionPass,
}

impl DataflowBlockPass {
    /// Returns a pass with this name that runs in contexts of at least this level.
    pub fn new(
        name: impl Into<String>,
        opt_level: u8,
        work: impl Fn(&mut FunctionEdit<'_>, &ModuleView<'_>, &PassContext) -> Result<(), PassError> + Send + Sync + 'static,
    ) -> DataflowBlockPass {
        let over_function = move |func: &mut FunctionEdit<'_>, module: &ModuleView<'_>, cx: &PassContext| {
            edit_regions(func, |block| work(block, module, cx))
        };
        DataflowBlockPass { function_pass: FunctionPass::new(name, opt_level, over_function) }
    }
}

impl Declare for DataflowBlockPass {
    fn info_mut(&mut self) -> &mut PassInfo {
        self.function_pass.info_mut()
    }
}

impl Pass for DataflowBlockPass {
    fn info(&self) -> &PassInfo {
        self.function_pass.info()
    }

    fn run(&self, module: &mut Module, cx: &PassContext) -> Result<Outcome, PassFailure> {
        self.function_pass.run(module, cx)
    }

    fn kind(&self) -> PassKind {
        PassKind::DataflowBlock
    }
}

/// A region that was copied out of its function, to be edited.
struct Part {
    function: Function,
    /// Variables of the function that are parameters of the part or bound in its chain, each with
    /// its counterpart in the part.
    vars: Vec<(VarId, VarId)>,
    /// The number of leading entries of `vars` that are parameters.
    inputs: usize,
}

impl Part {
    /// Returns each output as a pair of a variable of the function and its counterpart in the part.
    /// `body` is the body of the function.
    fn outputs<'a>(&'a self, body: &'a Body) -> impl Iterator<Item = (VarId, VarId)> + 'a {
        self.vars[self.inputs..].iter().copied().filter(|&(var, _)| !body.is_dataflow_var(var))
    }
}

fn edit_regions(
    func: &mut FunctionEdit<'_>,
    mut work: impl FnMut(&mut FunctionEdit<'_>) -> Result<(), PassError>,
) -> Result<(), PassError> {
    let mut relink = Relink::default();
    let mut retyped: Vec<VarId> = Vec::new();
    let given = symbols_of_params(func.cx, &func.function.body);
    for region in regions_of(&func.function.body) {
        let mut part = take_out(func.cx, func.function, &region).ok_or("a dataflow region is part of itself")?;
        let symbols = cast_symbols(func.cx, &part.function.body);
        part.function.body.begin_journal();
        let generation = part.function.body.generation();
        let outputs: Vec<VarId> = part.outputs(&func.function.body).map(|(_, inside)| inside).collect();
        let mut block = FunctionEdit::new(func.cx, &mut part.function, &outputs);
        let done = work(&mut block);
        let (messages, named) = block.end();
        func.messages.append(messages);
        let body = &part.function.body;
        done.map_err(|error| at_stop(func.cx, body, error))?;
        named?;
        if body.generation() != generation || !body.has_journal() {
            return Err(PassError::new("another body was put in the place of that of a dataflow region")
                .with_help("edit the bindings of the region instead"));
        }
        if !part.function.stamp().has_head_of(&func.function.stamp()) {
            return Err(PassError::new("the function of a dataflow region has other attributes, or another signature")
                .with_help("edit the bindings of the region; a function pass may edit the rest of the function"));
        }
        if body.is_edited() {
            rebind_outputs(&mut Editor::new(func.cx, &mut part.function.body), &outputs);
            let symbols: Vec<SymbolId> = symbols.into_iter().filter(|s| !given.contains(s)).collect();
            put_back(func, &region, &part, &symbols, &mut relink, &mut retyped)?;
        }
    }
    if retyped.is_empty() {
        return Ok(());
    }
    let body = &mut func.function.body;
    let mut retype = Retype::new(body);
    retyped.iter().for_each(|v| retype.changed(v.expr()));
    let root = body.root();
    retype
        .sweep(func.cx, body, root)
        .map(|_| ())
        .map_err(|e| PassError::new("a user of an output whose type changed has no type").with_cause(e))
}

/// Returns the region as the body of a function of its own; `None` if the region is ill-formed.
fn take_out(cx: &mut Context, function: &Function, region: &Region) -> Option<Part> {
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
    let outputs = bound.iter().filter(|(var, _)| !body.is_dataflow_var(*var));
    let fields: Vec<ExprId> = outputs.map(|(_, inside)| inside.expr()).collect();
    let tail = editor.tuple(&fields);
    part.set_params(given.iter().map(|&(_, inside)| inside).collect());
    part.set_let_body(last, tail);
    part.set_root(first);
    Some(Part { function: function.part(part), vars, inputs })
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

/// Replaces a region by its edited part.
fn put_back(
    func: &mut FunctionEdit<'_>,
    region: &Region,
    part: &Part,
    symbols: &[SymbolId],
    relink: &mut Relink,
    retyped: &mut Vec<VarId>,
) -> Result<(), PassError> {
    let Part { function: Function { body: new, .. }, vars, inputs } = part;
    let first = func.function.body.binding_name(func.cx, region.first).map(str::to_string);
    let begins = match &first {
        Some(name) => format!("the dataflow region that begins at %{name}"),
        None => "a dataflow region".to_string(),
    };
    let given: FxHashSet<ExprId> = vars[..*inputs].iter().map(|(_, inside)| inside.expr()).collect();
    let bound = bound_by(func.cx, &func.function.body, part, &given, symbols).map_err(|mistake| {
        let error = PassError::new(format!("{begins} {mistake}"));
        first.iter().fold(error, PassError::on_binding)
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
            let what = shown(func.cx, new, id, "something");
            return Err(PassError::new(format!("{begins} uses {what}, which it neither binds nor has as a parameter")));
        }
        transplant.bindings(&mut func.editor(), Some(new), [first, last]);
    }
    let body = &mut func.function.body;
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
                retyped.push(var);
            }
        }
    }
    relink.replace(body, region, copies.first().zip(copies.last()).map(|(&first, &last)| [first, last]));
    Ok(())
}

/// Returns the variables that an edited part binds, or the reason why the part cannot replace its
/// region.
fn bound_by(
    cx: &Context,
    body: &Body,
    part: &Part,
    given: &FxHashSet<ExprId>,
    symbols: &[SymbolId],
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
    for (var, inside) in part.outputs(body) {
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
    match symbols.iter().find(|s| !bound_here.contains(s) && !bound_before.contains(s)) {
        Some(&symbol) => {
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

anfora_ir::brief_debug! { DataflowBlockPass { info }; }
