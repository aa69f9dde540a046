//! Other shapes of inputs.

use anfora_ir::{
    Body, Context, DType, Diagnostic, Diagnostics, Dim, DimId, Function, IntoDiagnostics, Module, Retype, SymbolId,
    SymbolSubstitution, TensorType, TypeId, VarId, update_signatures,
};
use anfora_passes::{SymbolRef, bind_symbols};
use rustc_hash::{FxHashMap, FxHashSet};

use super::renaming::is_word;
use super::{edit, find_entry, retype, symbols_of, unknown, without_sigil};

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

/// Gives inputs of the entry their extents, by the name of the input.
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
/// If no input has a name, it is no tensor, or the number of its axes is another one; if two
/// extents are given for one symbol; or if the types of the program do not fit together then.
pub fn set_shapes(module: &mut Module, entry: &str, shapes: &[(String, Vec<NewExtent>)]) -> Result<(), Diagnostics> {
    edit(module, |module| {
        for (input, extents) in shapes {
            set_shape(module, entry, input, extents, KnownNumbers::Replaced)?;
        }
        Ok(())
    })
}

/// Gives one input its extents. The module is half rewritten after an error.
pub(crate) fn set_shape(
    module: &mut Module,
    entry: &str,
    input: &str,
    extents: &[NewExtent],
    numbers: KnownNumbers,
) -> Result<(), Diagnostics> {
    set_extents(module, entry, (input, extents), numbers).map_err(|errors| {
        let named = |mut error: Diagnostic| {
            error.function.get_or_insert_with(|| entry.to_string());
            error.binding.get_or_insert_with(|| input.to_string());
            error
        };
        errors.into_iter().map(named).collect::<Diagnostics>()
    })
}

fn set_extents(
    module: &mut Module,
    entry: &str,
    (input, extents): (&str, &[NewExtent]),
    numbers: KnownNumbers,
) -> Result<(), Diagnostics> {
    let key = find_entry(module, entry)?;
    let Some(function) = module.get(key) else { return Ok(()) };
    let param = find_input(&module.cx, &function.body, input)?;
    let own_symbols = symbols_of(&module.cx, function);
    let ty = function.body.ty(param.expr());
    let tensor = tensor_of(&mut module.cx, ty, extents.len())?;
    let dims: Vec<DimId> = tensor.shape.iter().flatten().copied().collect();
    let plan = ShapePlan::of(&mut module.cx, &own_symbols, (&dims, extents), numbers)?;
    // Symbols are replaced in the whole function.
    if !plan.fixed.is_empty() {
        let fixed: Vec<(SymbolRef<'_>, i64)> =
            plan.fixed.iter().map(|&(symbol, extent)| (SymbolRef::Symbol(symbol), extent)).collect();
        bind_symbols(module, Some(entry), &fixed)
            .map_err(|error| error.to_diagnostics().into_iter().collect::<Diagnostics>())?;
    }
    if !plan.named.is_empty() {
        let mut substitution = SymbolSubstitution::new();
        plan.named.iter().for_each(|&(symbol, by)| substitution.set(symbol, by));
        substitution.in_function(module, key, &[]).map_err(|failed| failed.error.into_diagnostics())?;
    }
    // Numbers and unknown extents are replaced in the type of the input.
    if let Some((function, cx)) = module.get_mut(key) {
        plan.state(cx, function, param, tensor.dtype, dims)?;
        #[cfg(feature = "onnx")]
        anfora_onnx::forget_stated_types(cx, function);
    }
    update_signatures(module, &[key]).map_err(IntoDiagnostics::into_diagnostics)
}

fn find_input(cx: &Context, body: &Body, input: &str) -> Result<VarId, Diagnostics> {
    let named = body.params().iter().filter_map(|&var| Some((cx.names.get(body.var_name(var)?), var)));
    let by_name: FxHashMap<&str, VarId> = named.clone().collect();
    let bare = without_sigil(input, |name| by_name.contains_key(name));
    by_name
        .get(bare)
        .copied()
        .ok_or_else(|| unknown("input", "", bare, named.map(|(name, _)| name).collect::<Vec<_>>().into_iter()).into())
}

/// The changes of one input.
#[derive(Default)]
struct ShapePlan {
    /// The symbols that become numbers, and those that become others.
    fixed: Vec<(SymbolId, i64)>,
    named: Vec<(SymbolId, DimId)>,
    /// The axes whose extent changes in the type of the input.
    stated: Vec<(usize, DimId)>,
    /// True if a number changes, so that other types may contradict those that were stated.
    changes_numbers: bool,
}

impl ShapePlan {
    /// States the new numbers in the type of an input, and infers the types that depend on it.
    fn state(
        &self,
        cx: &mut Context,
        function: &mut Function,
        param: VarId,
        dtype: DType,
        dims: Vec<DimId>,
    ) -> Result<(), Diagnostics> {
        if self.stated.is_empty() {
            return Ok(());
        }
        let before = function.body.ty(param.expr());
        let found = cx.types.as_tensor(before).and_then(|t| t.shape.clone());
        let mut dims: Vec<DimId> = found.map_or(dims, |shape| shape.to_vec());
        for &(axis, dim) in &self.stated {
            dims[axis] = dim;
        }
        let after = cx.types.tensor(dtype, &dims);
        function.body.set_type(param.expr(), after);
        if self.changes_numbers {
            function.ret = None;
        }
        let mut changed = Retype::new(&function.body);
        changed.changed(param.expr());
        retype(cx, &mut function.body, changed)
    }

    fn of(
        cx: &mut Context,
        own_symbols: &[SymbolId],
        (dims, extents): (&[DimId], &[NewExtent]),
        numbers: KnownNumbers,
    ) -> Result<ShapePlan, Diagnostics> {
        let mut plan = ShapePlan::default();
        let mut given: FxHashMap<SymbolId, &NewExtent> = FxHashMap::default();
        for (dim, extent) in dims.iter().zip(extents) {
            let Dim::Symbol(symbol) = *cx.types.dims.get(*dim) else { continue };
            if *extent != NewExtent::Kept
                && let Some(before) = given.insert(symbol, extent)
                && before != extent
            {
                let symbol = cx.dim_text(*dim);
                let (one, other) = (extent_text(before), extent_text(extent));
                return Err(Diagnostic::error(format!("the extents {one} and {other} are given for `{symbol}`")).into());
            }
        }
        let mut by_name: FxHashMap<String, DimId> = FxHashMap::default();
        for &symbol in own_symbols.iter().filter(|symbol| !given.contains_key(symbol)) {
            let name = cx.names.get(cx.types.dims.symbol_name(symbol)).to_string();
            let dim = cx.types.dims.symbol(symbol);
            by_name.entry(name).or_insert(dim);
        }
        let mut done: FxHashSet<SymbolId> = FxHashSet::default();
        for (axis, (&dim, extent)) in dims.iter().zip(extents).enumerate() {
            let new = match extent {
                NewExtent::Kept => continue,
                NewExtent::Fixed(number) => {
                    let too_large = |_| Diagnostic::error(format!("{number} is too large for an extent"));
                    cx.types.dims.constant(i64::try_from(*number).map_err(too_large)?)
                }
                NewExtent::Named(name) => named_dim(cx, &mut by_name, name)?,
            };
            match (cx.types.dims.get(dim).clone(), extent) {
                _ if new == dim => {}
                (Dim::Symbol(symbol), _) if !done.insert(symbol) => {}
                (Dim::Symbol(symbol), NewExtent::Named(_)) => plan.named.push((symbol, new)),
                (Dim::Symbol(symbol), _) => {
                    plan.fixed.extend(cx.types.dims.as_constant(new).map(|number| (symbol, number)));
                }
                (Dim::Unknown, _) => plan.stated.push((axis, new)),
                (Dim::Const(_), _) if numbers == KnownNumbers::Replaced => {
                    plan.changes_numbers = true;
                    plan.stated.push((axis, new));
                }
                _ => {
                    let (new, known) = (extent_text(extent), cx.dim_text(dim));
                    let error = Diagnostic::error(format!("the extent {new} is given, and the input has {known}"));
                    return Err(error.into());
                }
            }
        }
        Ok(plan)
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
        return Err(Diagnostic::error(format!("the input is no tensor: its type is {}", cx.type_text(ty))).into());
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
