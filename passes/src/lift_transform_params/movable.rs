//! The bindings that can be computed from weights, and their values: what several functions compute
//! alike is one value.

use anfora_ir::{
    AttrsId, Body, Context, Cursor, Expr, ExprId, GlobalId, IdSet, LiteralId, Module, OpId, Purity, SideTable, Step,
    SymbolId, SymbolSubstitution, SymbolWalk, Type, TypeId, VarId,
};
use anfora_manager::PassError;
use anfora_visit::{Binding, RewriteError, chain};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::{MovedBinding, WeightGroup, WeightedFunction, inputs_of};

/// A value that every function of a group computes from weights and constants.
#[derive(Clone, Debug)]
pub(super) struct LiftedValue {
    /// Its first binding in the first function.
    pub(super) binding: Binding,
    /// False if it is computed from constants alone. Then it is copied, and stays.
    pub(super) uses_weights: bool,
    /// True if a binding that stays uses it, in some function.
    is_output: bool,
    /// The number of functions that have it.
    functions: usize,
}

/// The values of a group, in the order of its first function.
#[derive(Debug, Default)]
pub(super) struct LiftedValues(Vec<LiftedValue>);

impl LiftedValues {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn get(&self, value: u32) -> &LiftedValue {
        &self.0[value as usize]
    }

    /// Returns the values that become parameters.
    pub(super) fn parameters(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.0).filter(|(_, value)| value.uses_weights && value.is_output).map(|(i, _)| i)
    }
}

/// A value in a form that is the same in all functions.
#[derive(PartialEq, Eq, Hash, Debug)]
struct ValueKey {
    form: ValueForm,
    attrs: Option<AttrsId>,
    ty: TypeId,
    inputs: SmallVec<[ValueInput; 3]>,
}

#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
enum ValueForm {
    CallOp(OpId),
    Call,
    Tuple,
    Proj(u32),
    Atom,
}

#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
enum ValueInput {
    Weight(u32),
    Value(u32),
    Literal(LiteralId),
    Global(GlobalId),
    Op(OpId),
    Absent,
}

/// The input that a variable is; `None` for variables that depend on inputs of the function.
type KnownVars = SideTable<ExprId, Option<ValueInput>>;

impl WeightGroup {
    /// Finds the values that all functions compute, and the bindings of each function that compute
    /// them.
    ///
    /// # Errors
    /// If the weights of the functions differ, or a function is not in A-normal form.
    pub(super) fn find(&mut self, module: &mut Module, purity: &Purity) -> Result<(), PassError> {
        let mut by_value: FxHashMap<ValueKey, u32> = FxHashMap::default();
        let mut types: Vec<TypeId> = Vec::new();
        for i in 0..self.functions.len() {
            let function = &mut self.functions[i];
            let Some((source, cx)) = module.get_mut(function.key) else { continue };
            let body = &source.body;
            let weights = &body.params()[function.inputs..];
            let bound = bound_symbols(cx, body, weights);
            let own = weight_types(cx, body, weights, &bound);
            let mut symbols = SymbolSubstitution::new();
            if i == 0 {
                types = own;
            } else if !are_same(cx, &own, &types, &mut symbols) {
                let first = &self.functions[0].name;
                let error = PassError::new(format!("its weights differ from those of `@{first}`"));
                let help = "functions that share a transform have the same weights; `functions` selects some";
                return Err(error.in_function(self.functions[i].name.clone()).with_help(help));
            }
            let mut finder =
                ValueFinder { cx, body, purity, bound, symbols, is_first: i == 0, by_value: &mut by_value };
            finder.find(function, &mut self.values);
        }
        self.keep_common();
        for function in &self.functions {
            let Some(source) = module.get(function.key) else { continue };
            mark_outputs(&module.cx, &source.body, function, &mut self.values)
                .map_err(|error| PassError::from(error).in_function(function.name.clone()))?;
        }
        Ok(())
    }

    /// Removes the values that some function does not have. What uses them is not common either.
    fn keep_common(&mut self) {
        let all = self.functions.len();
        let mut kept = 0;
        let mut numbers: Vec<Option<u32>> = Vec::with_capacity(self.values.len());
        for value in &self.values.0 {
            let is_common = value.functions == all;
            numbers.push(is_common.then_some(kept));
            kept += u32::from(is_common);
        }
        self.values.0.retain(|value| value.functions == all);
        for function in &mut self.functions {
            function.moved.retain_mut(|moved| match numbers[moved.value as usize] {
                Some(number) => {
                    moved.value = number;
                    true
                }
                None => false,
            });
        }
    }
}

/// Returns the symbols that parameters bind.
pub(super) fn bound_symbols(cx: &Context, body: &Body, params: &[VarId]) -> FxHashSet<SymbolId> {
    let mut symbols = FxHashSet::default();
    for param in params {
        cx.types.for_each_binding_symbol(body.ty(param.expr()), |symbol| _ = symbols.insert(symbol));
    }
    symbols
}

/// Returns the types of weights. An extent with a symbol that no weight binds is unknown, since it
/// is not known before the function runs.
pub(super) fn weight_types(
    cx: &mut Context,
    body: &Body,
    weights: &[VarId],
    bound: &FxHashSet<SymbolId>,
) -> Vec<TypeId> {
    let unknown = cx.types.dims.unknown();
    let mut types = Vec::with_capacity(weights.len());
    for weight in weights {
        let ty = body.ty(weight.expr());
        types.push(cx.types.substitute(ty, |symbol| (!bound.contains(&symbol)).then_some(unknown)));
    }
    types
}

/// Returns true if types are the same up to the symbols that they bind, and sets the replacements
/// of these.
fn are_same(cx: &mut Context, own: &[TypeId], first: &[TypeId], symbols: &mut SymbolSubstitution) -> bool {
    for (&own, &first) in own.iter().zip(first) {
        let (mut from, mut to) = (Vec::new(), Vec::new());
        cx.types.for_each_binding_symbol(own, |symbol| from.push(symbol));
        cx.types.for_each_binding_symbol(first, |symbol| to.push(symbol));
        for (from, to) in from.into_iter().zip(to) {
            if symbols.get(from).is_none() {
                symbols.set(from, cx.types.dims.symbol(to));
            }
        }
    }
    own.len() == first.len() && own.iter().zip(first).all(|(&own, &first)| symbols.ty(cx, own) == first)
}

/// The search for the values of one function.
struct ValueFinder<'a> {
    cx: &'a mut Context,
    body: &'a Body,
    purity: &'a Purity,
    /// The symbols that weights bind.
    bound: FxHashSet<SymbolId>,
    /// The symbols of the first function in the place of those of this one.
    symbols: SymbolSubstitution,
    is_first: bool,
    by_value: &'a mut FxHashMap<ValueKey, u32>,
}

impl ValueFinder<'_> {
    /// Finds the bindings of the function's own block that can be computed from weights and
    /// constants. If the function is not the first, only those that the functions before it have.
    fn find(&mut self, function: &mut WeightedFunction, values: &mut LiftedValues) {
        let body = self.body;
        let mut walk = SymbolWalk::new();
        let mut known: KnownVars = body.side_table(None);
        for (i, weight) in (0..).zip(&body.params()[function.inputs..]) {
            let mut is_bound = true;
            walk.in_type(self.cx, body.ty(weight.expr()), |symbol| is_bound &= self.bound.contains(&symbol));
            if is_bound {
                known.set(weight.expr(), Some(ValueInput::Weight(i)));
            }
        }
        let mut data = DataTypes::default();
        for binding in chain(body, body.root()) {
            let ty = body.ty(binding.var.expr());
            if !may_move(self.cx, body, self.purity, binding.value) || !data.holds_tensors(self.cx, ty) {
                continue;
            }
            let Some(key) = self.key(&binding, &known) else { continue };
            let mut is_bound = true;
            let mut check = |symbol: SymbolId| is_bound &= self.bound.contains(&symbol);
            walk.in_node(self.cx, body, binding.value, &mut check);
            walk.in_type(self.cx, ty, check);
            if !is_bound {
                continue;
            }
            let value = match self.by_value.get(&key) {
                Some(&value) => value,
                None if self.is_first => {
                    let is_weight = |input: &ValueInput| match input {
                        ValueInput::Weight(_) => true,
                        ValueInput::Value(value) => values.get(*value).uses_weights,
                        _ => false,
                    };
                    let uses_weights = key.inputs.iter().any(is_weight);
                    let value = values.len() as u32;
                    values.0.push(LiftedValue { binding, uses_weights, is_output: false, functions: 0 });
                    self.by_value.insert(key, value);
                    value
                }
                None => continue,
            };
            known.set(binding.var.expr(), Some(ValueInput::Value(value)));
            function.moved.push(MovedBinding { binding, value });
        }
        // A function may have several bindings of one value.
        let mut seen = vec![false; values.len()];
        for moved in &function.moved {
            if !std::mem::replace(&mut seen[moved.value as usize], true) {
                values.0[moved.value as usize].functions += 1;
            }
        }
    }

    /// Returns the value of a binding in terms of weights and other values; `None` if it uses
    /// others.
    fn key(&mut self, binding: &Binding, known: &KnownVars) -> Option<ValueKey> {
        let body = self.body;
        let mut inputs = SmallVec::new();
        for &input in inputs_of(body, &binding.value) {
            inputs.push(match body.expr(input) {
                Expr::Var { .. } => known[input]?,
                Expr::Literal(literal) => ValueInput::Literal(literal),
                Expr::Global(global) => ValueInput::Global(global),
                Expr::Op(op) => ValueInput::Op(op),
                Expr::None => ValueInput::Absent,
                _ => return None,
            });
        }
        let (form, attrs) = match body.expr(binding.value) {
            Expr::CallOp { op, attrs, .. } => (ValueForm::CallOp(op), Some(attrs)),
            Expr::Call { attrs, .. } => (ValueForm::Call, Some(attrs)),
            Expr::Tuple(_) => (ValueForm::Tuple, None),
            Expr::Proj { index, .. } => (ValueForm::Proj(index), None),
            _ => (ValueForm::Atom, None),
        };
        let attrs = attrs.map(|attrs| self.symbols.attrs(self.cx, attrs));
        let ty = self.symbols.ty(self.cx, body.ty(binding.var.expr()));
        Some(ValueKey { form, attrs, ty, inputs })
    }
}

/// Returns true if a value may be computed before the function runs.
fn may_move(cx: &Context, body: &Body, purity: &Purity, value: ExprId) -> bool {
    match body.expr(value) {
        Expr::CallOp { op, .. } => {
            let facts = cx.ops.facts(op);
            !facts.is_match_cast() && !cx.ops.is_opaque(op) && !purity.call_is_impure(cx, body, value)
        }
        Expr::Call { .. } => !purity.call_is_impure(cx, body, value),
        Expr::Tuple(_) | Expr::Proj { .. } => true,
        expr => expr.is_atom(),
    }
}

/// The types of which it is known whether all their parts are tensors.
#[derive(Default)]
struct DataTypes(FxHashMap<TypeId, bool>);

impl DataTypes {
    /// Returns true if a type is that of a tensor, or of tuples of tensors.
    fn holds_tensors(&mut self, cx: &Context, ty: TypeId) -> bool {
        let mut stack = vec![ty];
        while let Some(&top) = stack.last() {
            let known = match cx.types.get(top) {
                Type::Tensor(_) => true,
                Type::Tuple(fields) => {
                    let before = stack.len();
                    stack.extend(fields.iter().filter(|field| !self.0.contains_key(field)));
                    if stack.len() > before {
                        continue;
                    }
                    fields.iter().all(|field| self.0[field])
                }
                _ => false,
            };
            self.0.insert(top, known);
            stack.pop();
        }
        self.0[&ty]
    }
}

/// Marks the values that the rest of a function uses.
fn mark_outputs(
    cx: &Context,
    body: &Body,
    function: &WeightedFunction,
    values: &mut LiftedValues,
) -> Result<(), RewriteError> {
    let mut by_var: SideTable<ExprId, Option<u32>> = body.side_table(None);
    let mut gone: IdSet<ExprId> = IdSet::with_capacity(body.len());
    for moved in &function.moved {
        by_var.set(moved.binding.var.expr(), Some(moved.value));
        if values.get(moved.value).uses_weights {
            gone.insert(moved.binding.id);
        }
    }
    // The value of the last Let, if the Let moves. The value is the next step.
    let mut moving = None;
    let mut cursor = Cursor::new(body);
    while let Some(step) = cursor.next(body) {
        RewriteError::unless_anf(cx, body, &cursor, step)?;
        let mut mark = |input: &ExprId| {
            if let Some(value) = by_var[*input] {
                values.0[value as usize].is_output = true;
            }
        };
        match step {
            Step::Let(id) => {
                moving = Binding::of(body, id).filter(|_| gone.contains(id)).map(|binding| binding.value);
            }
            Step::Atom(id) | Step::Flat(id) if moving.take() == Some(id) => {}
            Step::Atom(id) => mark(&id),
            Step::Flat(id) => body.inputs(id).iter().for_each(mark),
            _ => {}
        }
    }
    Ok(())
}
