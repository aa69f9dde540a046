//! Other shapes of inputs.

use anfora_ir::{
    Body, Context, DType, Diagnostic, Diagnostics, Dim, DimId, ExprId, Function, Module, SymbolId, SymbolSubstitution,
    TensorType, TypeId, VarId,
};
use anfora_passes::substitute_symbols;
use rustc_hash::{FxHashMap, FxHashSet};

use super::renaming::is_word;
use super::{edit, find_entry, symbols_of, unknown, without_sigil};

/// The new extent of an axis of an input: see [`set_shapes`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum NewExtent {
    /// The extent stays.
    Kept,
    /// A number.
    Fixed(u64),
    /// The symbolic dimension of this name, which may be a new one.
    Named(String),
}

/// The treatment of numbers in the type of an input that are given another extent.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum KnownNumbers {
    /// Another extent takes their place.
    Replaced,
    /// Another extent is an error.
    #[cfg_attr(not(feature = "interp"), expect(dead_code, reason = "`slim` keeps them"))]
    Kept,
}

/// Gives inputs of the entry their extents, by the name of the input. All inputs change at once, so
/// extents may be given that fit only together.
///
/// - A symbolic extent that becomes a number, or the extent of another name, becomes that in the
///   whole function (BindSymbols describes what happens to callers).
/// - A number that becomes another number or a symbol, and an unknown extent, change in the type of
///   the input. The types that depend on it are inferred again, and the result has the type that
///   follows. A constant in the program, such as the shape of a `reshape`, stays: the types may
///   then contradict each other, which is an error that names the binding.
///
/// For a model, the types that the file states beside those of the program are left out.
///
/// Linear in the program.
///
/// # Errors
/// If no input has a name, an input is given twice, it is no tensor, or the number of its axes is
/// another one; if two extents are given for one symbol; or if the types of the program do not fit
/// together then.
pub fn set_shapes(module: &mut Module, entry: &str, shapes: &[(String, Vec<NewExtent>)]) -> Result<(), Diagnostics> {
    edit(module, |module| set_extents(module, entry, shapes, KnownNumbers::Replaced))
}

/// Gives inputs their extents: see [`set_shapes`]. The module is half rewritten after an error.
pub(crate) fn set_extents(
    module: &mut Module,
    entry: &str,
    shapes: &[(String, Vec<NewExtent>)],
    numbers: KnownNumbers,
) -> Result<(), Diagnostics> {
    let key = find_entry(module, entry)?;
    let Some((function, cx)) = module.get_mut(key) else { return Ok(()) };
    let mut plan = ShapePlan::of(cx, function, shapes, numbers).map_err(|errors| {
        let named = |mut error: Diagnostic| {
            error.function.get_or_insert_with(|| entry.to_string());
            error
        };
        errors.into_iter().map(named).collect::<Diagnostics>()
    })?;
    for &(param, ty) in &plan.stated {
        function.body.set_type(param.expr(), ty);
    }
    if plan.changes_numbers {
        function.ret = None;
    }
    #[cfg(feature = "onnx")]
    anfora_onnx::forget_stated_types(cx, function);
    let changed: Vec<ExprId> = plan.stated.iter().map(|(param, _)| param.expr()).collect();
    substitute_symbols(module, key, &mut plan.substitution, &changed)
        .map_err(|error| error.to_diagnostics().into_iter().collect())
}

/// The changes of a function whose inputs are given extents.
#[derive(Default)]
struct ShapePlan {
    /// The symbols that become numbers or other symbols.
    substitution: SymbolSubstitution,
    /// The inputs in whose types numbers or unknown extents change, with the new types.
    stated: Vec<(VarId, TypeId)>,
    /// True if a number changes, so that other types may contradict those that were stated.
    changes_numbers: bool,
}

/// An input that is given extents.
struct GivenShape<'a> {
    name: &'a str,
    param: VarId,
    dtype: DType,
    dims: Vec<DimId>,
    extents: &'a [NewExtent],
}

impl GivenShape<'_> {
    /// Returns the axes with a new extent: the axis, its old extent, and the new one.
    fn axes(&self) -> impl Iterator<Item = (usize, DimId, &NewExtent)> {
        let axes = self.dims.iter().zip(self.extents).enumerate();
        axes.filter(|(_, (_, extent))| **extent != NewExtent::Kept).map(|(axis, (&dim, extent))| (axis, dim, extent))
    }

    fn on_input(&self, error: impl Into<Diagnostics>) -> Diagnostics {
        on_input(error, self.name)
    }
}

fn on_input(error: impl Into<Diagnostics>, input: &str) -> Diagnostics {
    error.into().into_iter().map(|error| error.on_binding(input.to_string())).collect()
}

impl ShapePlan {
    fn of(
        cx: &mut Context,
        function: &Function,
        shapes: &[(String, Vec<NewExtent>)],
        numbers: KnownNumbers,
    ) -> Result<ShapePlan, Diagnostics> {
        let inputs = given_shapes(cx, &function.body, shapes)?;
        let given = given_symbols(cx, &inputs)?;

        // A name stands for a symbol that keeps its name, or for a new one.
        let mut by_name: FxHashMap<String, DimId> = FxHashMap::default();
        for symbol in symbols_of(cx, function).into_iter().filter(|symbol| !given.contains_key(symbol)) {
            let name = cx.names.get(cx.types.dims.symbol_name(symbol)).to_string();
            let dim = cx.types.dims.symbol(symbol);
            by_name.entry(name).or_insert(dim);
        }

        let mut plan = ShapePlan::default();
        // Extents that are expressions follow from those of symbols, which are known at the end.
        let mut computed: Vec<(&GivenShape<'_>, usize, DimId)> = Vec::new();
        for input in &inputs {
            let mut dims = input.dims.clone();
            for (axis, dim, extent) in input.axes() {
                let new = new_dim(cx, &mut by_name, extent).map_err(|error| input.on_input(error))?;
                match *cx.types.dims.get(dim) {
                    _ if new == dim => {}
                    Dim::Symbol(symbol) => plan.substitution.set(symbol, new),
                    Dim::Unknown => dims[axis] = new,
                    Dim::Const(_) if numbers == KnownNumbers::Replaced => {
                        plan.changes_numbers = true;
                        dims[axis] = new;
                    }
                    _ => computed.push((input, axis, new)),
                }
            }
            if dims != input.dims {
                plan.stated.push((input.param, cx.types.tensor(input.dtype, &dims)));
            }
        }
        for (input, axis, new) in computed {
            let after = plan.substitution.ty(cx, function.body.ty(input.param.expr()));
            let after = cx.types.as_tensor(after).and_then(|tensor| tensor.shape.as_ref()).map(|shape| shape[axis]);
            if after != Some(new) {
                let (new, known) = (cx.dim_text(new), cx.dim_text(after.unwrap_or(input.dims[axis])));
                let error = Diagnostic::error(format!("the extent {new} is given, and the input has {known}"));
                return Err(input.on_input(error.with_help("`?` leaves an extent as it is")));
            }
        }
        Ok(plan)
    }
}

/// Finds the inputs that are given extents.
fn given_shapes<'a>(
    cx: &mut Context,
    body: &Body,
    shapes: &'a [(String, Vec<NewExtent>)],
) -> Result<Vec<GivenShape<'a>>, Diagnostics> {
    let params: Vec<(String, VarId)> =
        body.params().iter().filter_map(|&var| Some((cx.names.get(body.var_name(var)?).to_string(), var))).collect();
    let by_name: FxHashMap<&str, VarId> = params.iter().map(|(name, var)| (name.as_str(), *var)).collect();
    let mut seen: FxHashSet<VarId> = FxHashSet::default();
    let mut inputs = Vec::with_capacity(shapes.len());
    for (input, extents) in shapes {
        let bare = without_sigil(input, |name| by_name.contains_key(name));
        let Some(&param) = by_name.get(bare) else {
            return Err(on_input(unknown("input", "", bare, params.iter().map(|(name, _)| name.as_str())), input));
        };
        if !seen.insert(param) {
            let error = Diagnostic::error(format!("the input `{bare}` is given twice"));
            return Err(on_input(error.with_help("give all extents of an input at once"), input));
        }
        let tensor = tensor_of(cx, body.ty(param.expr()), extents.len()).map_err(|error| on_input(error, input))?;
        let dims: Vec<DimId> = tensor.shape.iter().flatten().copied().collect();
        inputs.push(GivenShape { name: input, param, dtype: tensor.dtype, dims, extents });
    }
    Ok(inputs)
}

/// Returns the extents that symbols are given.
fn given_symbols<'a>(
    cx: &Context,
    inputs: &'a [GivenShape<'_>],
) -> Result<FxHashMap<SymbolId, &'a NewExtent>, Diagnostics> {
    let mut given: FxHashMap<SymbolId, &NewExtent> = FxHashMap::default();
    for input in inputs {
        for (_, dim, extent) in input.axes() {
            let Dim::Symbol(symbol) = *cx.types.dims.get(dim) else { continue };
            if let Some(before) = given.insert(symbol, extent)
                && before != extent
            {
                let symbol = cx.dim_text(dim);
                let (one, other) = (extent_text(before), extent_text(extent));
                let error = Diagnostic::error(format!("the extents {one} and {other} are given for `{symbol}`"));
                return Err(input.on_input(error.with_help("a symbolic dimension has one extent in all inputs")));
            }
        }
    }
    Ok(given)
}

/// Returns the dimension of an extent that is given.
fn new_dim(cx: &mut Context, by_name: &mut FxHashMap<String, DimId>, extent: &NewExtent) -> Result<DimId, Diagnostics> {
    match extent {
        NewExtent::Kept => Ok(cx.types.dims.unknown()),
        NewExtent::Named(name) => named_dim(cx, by_name, name),
        NewExtent::Fixed(number) => match i64::try_from(*number) {
            Ok(number) => Ok(cx.types.dims.constant(number)),
            Err(_) => {
                let error = Diagnostic::error(format!("{number} is too large for an extent"));
                Err(error.with_help(format!("the largest extent is {}", i64::MAX)).into())
            }
        },
    }
}

fn extent_text(extent: &NewExtent) -> String {
    match extent {
        NewExtent::Kept => "?".to_string(),
        NewExtent::Fixed(number) => number.to_string(),
        NewExtent::Named(name) => name.clone(),
    }
}

/// Returns the symbol with a name, which is made if there is none.
fn named_dim(cx: &mut Context, by_name: &mut FxHashMap<String, DimId>, name: &str) -> Result<DimId, Diagnostics> {
    if let Some(&dim) = by_name.get(name) {
        return Ok(dim);
    }
    if !is_word(name) {
        let error = Diagnostic::error(format!("`{name}` is no extent"));
        return Err(error.with_help("an extent is a number, or a name of letters, digits and `_`").into());
    }
    let id = cx.names.intern(name);
    let symbol = cx.types.dims.new_symbol(id);
    let dim = cx.types.dims.symbol(symbol);
    by_name.insert(name.to_string(), dim);
    Ok(dim)
}

/// Returns the tensor type `ty` with a shape of `rank` extents.
fn tensor_of(cx: &mut Context, ty: TypeId, rank: usize) -> Result<TensorType, Diagnostics> {
    let Some(mut tensor) = cx.types.as_tensor(ty).cloned() else {
        let error = Diagnostic::error(format!("the input is no tensor: its type is {}", cx.type_text(ty)));
        return Err(error.with_help("only tensors have extents").into());
    };
    match &tensor.shape {
        Some(shape) if shape.len() == rank => {}
        Some(shape) => {
            let has = shape.len();
            let error = Diagnostic::error(format!("{rank} extents are given, and the input has {has}"));
            return Err(error.with_help("`?` leaves an extent as it is").into());
        }
        None => tensor.shape = Some((0..rank).map(|_| cx.types.dims.unknown()).collect()),
    }
    Ok(tensor)
}
