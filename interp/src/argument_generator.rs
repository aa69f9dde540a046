//! Arguments for test runs.

use anfora_ir::{
    Context, DType, Diagnostic, Diagnostics, Dim, DimId, Dims, Element, Function, IntoDiagnostics, Literal, SymbolId,
    Type, TypeId, element_count,
};
use rustc_hash::FxHashMap;

use crate::check::evaluate_dim;
use crate::interpreter::random_tensor;
use crate::value::{ValueId, Values};

/// Arguments of a function and their arena.
#[derive(Clone, Debug)]
pub struct Arguments {
    /// The arena.
    pub values: Values,
    /// An argument for each parameter, in order.
    pub list: Vec<ValueId>,
}

/// The kind of numbers that are drawn.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Numbers {
    /// The numbers of [`random_tensor`].
    #[default]
    Ordinary,
    /// Extreme numbers: infinities, NaNs with payloads, both zeros, the largest and the smallest
    /// number. Booleans are the opposite of the first element of an ordinary tensor with the same
    /// seed, so that two runs take both sides of a branch.
    Extreme,
}

/// The error for a parameter for which no argument can be drawn.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the parameter `%{parameter}` of type {ty} cannot be drawn{}", why(.found))]
pub struct CannotDraw {
    /// The parameter, without `%`.
    pub parameter: String,
    /// Its type.
    pub ty: String,
    /// The part of its type that cannot be drawn, if it is not the whole type.
    pub found: Option<String>,
}

impl IntoDiagnostics for CannotDraw {
    fn into_diagnostics(self) -> Diagnostics {
        Diagnostic::from_error(&self).into()
    }
}

fn why(found: &Option<String>) -> String {
    found.as_ref().map_or_else(String::new, |found| format!(": {found}"))
}

/// Draws arguments for a function from the types of its parameters: tensors, and tuples of them.
///
/// The argument of a parameter depends only on the seed and on the parameter's name and type. A
/// symbolic dimension has the same extent wherever it occurs. A computed dimension has the extent
/// that its expression evaluates to.
///
/// ```
/// use anfora_ir::{Source, parse_module};
/// use anfora_interp::{ArgumentGenerator, Interpreter};
///
/// let text = "def @main(%x: Tensor[(n, 2 * n), float32]) { tanh(%x) }";
/// let module = parse_module(Source::new("example", text), anfora_ops::standard()).unwrap();
/// let main = module.get(module.find("main").unwrap()).unwrap();
/// let drawn = ArgumentGenerator::new(7).extents(&[3]).arguments(&module.cx, main).unwrap();
/// let outcome = Interpreter::new(&module).call("main", drawn.values, &drawn.list).unwrap();
/// assert_eq!(outcome.tensor().unwrap().shape(), [3, 6]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct ArgumentGenerator {
    seed: u64,
    numbers: Numbers,
    extents: Vec<usize>,
    dims: FxHashMap<String, usize>,
    given: FxHashMap<usize, Literal>,
    most_bytes: Option<usize>,
}

/// The default extent of a symbolic dimension.
const EXTENT: usize = 2;
/// The most parts of an argument. A type may share parts so often that its expansion is
/// exponential.
const MOST_PARTS: usize = 1 << 22;

impl ArgumentGenerator {
    /// Returns a generator of ordinary numbers with a seed.
    pub fn new(seed: u64) -> ArgumentGenerator {
        ArgumentGenerator { seed, ..ArgumentGenerator::default() }
    }

    /// Sets the kind of numbers.
    #[must_use]
    pub fn numbers(self, numbers: Numbers) -> ArgumentGenerator {
        ArgumentGenerator { numbers, ..self }
    }

    /// Sets the extents of symbolic dimensions, in the order in which the parameters name them. The
    /// list repeats if there are more dimensions. Without a list, all extents are 2.
    #[must_use]
    pub fn extents(self, extents: &[usize]) -> ArgumentGenerator {
        ArgumentGenerator { extents: extents.to_vec(), ..self }
    }

    /// Sets the extent of the symbolic dimension `name`. It overrides the shapes of given tensors.
    /// A name that no parameter uses is ignored.
    ///
    /// Cost: linear in the text.
    #[must_use]
    pub fn dim(mut self, name: impl Into<String>, extent: usize) -> ArgumentGenerator {
        self.dims.insert(name.into(), extent);
        self
    }

    /// Gives a parameter, counted from 0, this tensor. The tensor's shape determines the symbols of
    /// the parameter's type.
    #[must_use]
    pub fn given(mut self, parameter: usize, tensor: Literal) -> ArgumentGenerator {
        self.given.insert(parameter, tensor);
        self
    }

    /// Limits the bytes that are drawn for all parameters together.
    #[must_use]
    pub fn most_bytes(self, bytes: usize) -> ArgumentGenerator {
        ArgumentGenerator { most_bytes: Some(bytes), ..self }
    }

    /// Returns an argument for each parameter.
    ///
    /// # Errors
    /// If a parameter's type is neither a tensor type of known rank nor a tuple of such types, has
    /// an extent that does not evaluate to a number from 0, has element types without kernels, or
    /// is too large.
    pub fn arguments(&self, cx: &Context, function: &Function) -> Result<Arguments, CannotDraw> {
        let body = &function.body;
        let mut drawing = Drawing {
            cx,
            draw: self,
            symbols: self.symbols(cx, function),
            bytes_left: self.most_bytes.unwrap_or(usize::MAX),
            values: Values::new(),
        };
        let mut list = Vec::new();
        for (i, &param) in body.params().iter().enumerate() {
            if let Some(given) = self.given.get(&i) {
                list.push(drawing.values.tensor(given.clone()));
                continue;
            }
            let name = body.var_name(param).map_or_else(|| i.to_string(), |n| cx.names.get(n).to_string());
            let ty = body.ty(param.expr());
            let drawn = drawing.value(ty, self.seed ^ hash_of(&name));
            list.push(drawn.map_err(|found| CannotDraw { parameter: name, ty: cx.type_text(ty), found })?);
        }
        Ok(Arguments { values: drawing.values, list })
    }

    /// Returns the extents of the symbols that the parameters name.
    fn symbols(&self, cx: &Context, function: &Function) -> FxHashMap<SymbolId, i64> {
        let dims = &cx.types.dims;
        let mut symbols: FxHashMap<SymbolId, i64> = FxHashMap::default();
        let stated = |s: SymbolId| {
            self.dims.get(cx.names.get(dims.symbol_name(s))).map(|&e| i64::try_from(e).unwrap_or(i64::MAX))
        };
        let types = || function.body.params().iter().map(|p| function.body.ty(p.expr()));
        for (i, ty) in types().enumerate() {
            if let (Some(given), Some(tensor)) = (self.given.get(&i), cx.types.as_tensor(ty)) {
                for (&dim, &extent) in tensor.shape.iter().flatten().zip(given.shape()) {
                    if let (Dim::Symbol(s), Ok(extent)) = (dims.get(dim), i64::try_from(extent)) {
                        symbols.entry(*s).or_insert(stated(*s).unwrap_or(extent));
                    }
                }
            }
        }
        let mut named = 0;
        for ty in types() {
            cx.types.for_each_symbol(ty, |dim| {
                if let Dim::Symbol(s) = *dims.get(dim) {
                    symbols.entry(s).or_insert_with(|| {
                        if let Some(extent) = stated(s) {
                            return extent;
                        }
                        named += 1;
                        let extent = match self.extents.len() {
                            0 => EXTENT,
                            n => self.extents[(named - 1) % n],
                        };
                        i64::try_from(extent).unwrap_or(i64::MAX)
                    });
                }
            });
        }
        symbols
    }
}

/// The state of the drawing of arguments.
struct Drawing<'a> {
    cx: &'a Context,
    draw: &'a ArgumentGenerator,
    symbols: FxHashMap<SymbolId, i64>,
    bytes_left: usize,
    values: Values,
}

impl Drawing<'_> {
    /// Returns a value of a type. Each of its tensors has its own seed. The error is the part of
    /// the type that cannot be drawn, or `None` if it is the whole type.
    fn value(&mut self, ty: TypeId, seed: u64) -> Result<ValueId, Option<String>> {
        enum Pending {
            Type(TypeId),
            Close(usize),
        }
        let types = &self.cx.types;
        let mut made: Vec<ValueId> = Vec::new();
        let mut stack = vec![Pending::Type(ty)];
        let mut parts = 0;
        while let Some(pending) = stack.pop() {
            match pending {
                Pending::Close(n) => {
                    let fields = made.split_off(made.len() - n);
                    made.push(self.values.tuple(&fields));
                }
                Pending::Type(part) => {
                    parts += 1;
                    if parts > MOST_PARTS {
                        return Err(Some(format!("it has more than {MOST_PARTS} parts")));
                    }
                    match types.get(part) {
                        Type::Tensor(tensor) => {
                            let seed = seed ^ (parts as u64 - 1);
                            let tensor =
                                tensor.shape.as_ref().ok_or_else(|| "its rank is not known".to_string()).and_then(
                                    |shape| {
                                        let shape: Result<Vec<usize>, String> =
                                            shape.iter().map(|&d| self.extent(&types.dims, d)).collect();
                                        let drawn = self.tensor(tensor.dtype, &shape?, seed)?;
                                        self.with_known(part, drawn)
                                    },
                                );
                            made.push(self.values.tensor(tensor.map_err(Some)?));
                        }
                        Type::Tuple(fields) => {
                            stack.push(Pending::Close(fields.len()));
                            stack.extend(fields.iter().rev().map(|&f| Pending::Type(f)));
                        }
                        _ if part == ty => return Err(None),
                        _ => return Err(Some(format!("it holds {}", self.cx.type_text(part)))),
                    }
                }
            }
        }
        Ok(made.pop().expect("the post-order of one value leaves one"))
    }

    /// Returns the tensor with the elements that its type states.
    fn with_known(&self, ty: TypeId, drawn: Literal) -> Result<Literal, String> {
        let Some(known) = self.cx.types.elements(ty) else { return Ok(drawn) };
        let Some(elements) = drawn.to_i128s() else { return Ok(drawn) };
        // The lowest 64 bits of each are taken.
        let mut elements: Vec<i64> = elements.into_iter().map(|e| e as i64).collect();
        let dims = &self.cx.types.dims;
        for (element, &dim) in elements.iter_mut().zip(known) {
            if *dims.get(dim) != Dim::Unknown {
                let found = evaluate_dim(dims, dim, |s| self.symbols.get(&s).copied());
                *element = found
                    .and_then(|e| i64::try_from(e).ok())
                    .ok_or_else(|| format!("its element {} has no value", self.cx.dim_text(dim)))?;
            }
        }
        Literal::from_i64s(drawn.dtype(), drawn.shape(), &elements).map_err(|e| e.to_string())
    }

    fn extent(&self, dims: &Dims, dim: DimId) -> Result<usize, String> {
        if *dims.get(dim) == Dim::Unknown {
            return Ok(EXTENT);
        }
        let extent = evaluate_dim(dims, dim, |s| self.symbols.get(&s).copied());
        extent.and_then(|e| usize::try_from(e).ok()).ok_or_else(|| {
            let text = self.cx.dim_text(dim);
            match extent {
                Some(e) => format!("its extent {text} comes to {e}"),
                None => format!("its extent {text} has no value"),
            }
        })
    }

    fn tensor(&mut self, dtype: DType, shape: &[usize], seed: u64) -> Result<Literal, String> {
        if !dtype.has_kernels() {
            return Err(format!("{} has no kernels", dtype.name()));
        }
        let too_large = || "it is too large".to_string();
        let bytes = element_count(shape).and_then(|n| dtype.byte_len(n)).filter(|&b| b <= self.bytes_left);
        let bytes = bytes.ok_or_else(too_large)?;
        let drawn = match self.draw.numbers {
            Numbers::Ordinary => random_tensor(dtype, shape, seed),
            Numbers::Extreme => extreme_tensor(dtype, shape, seed),
        };
        let drawn = drawn.ok_or_else(too_large)?;
        self.bytes_left -= bytes;
        Ok(drawn)
    }
}

/// Returns a tensor of extreme numbers. Floats go through a list of them, from a position that the
/// seed determines. Integers and booleans are a splat, since few programs expect a tensor of
/// different extreme integers. `None` in the cases in which [`random_tensor`] returns `None`.
fn extreme_tensor(dtype: DType, shape: &[usize], seed: u64) -> Option<Literal> {
    const FLOATS: [u32; 8] =
        [0x7f80_0000, 0x8000_0000, 0x7fc0_1234, 0xff80_0000, 0x7f7f_ffff, 0x0000_0001, 0x3f80_0000, 0xffc0_0001];
    let pick = |len: usize| (seed % len as u64) as usize;
    let ends = |min: i64, max: i64| [min, -1, 0, max, 1][pick(5)];
    let unsigned = |max: u64| [0, max, 1][pick(3)];
    match dtype {
        DType::Float32 | DType::Float64 => {
            let count = element_count(shape)?;
            let mut bytes = Vec::new();
            bytes.try_reserve_exact(dtype.byte_len(count)?).ok()?;
            for &float in FLOATS.iter().cycle().skip(pick(FLOATS.len())).take(count) {
                let float = f32::from_bits(float);
                match dtype {
                    DType::Float32 => bytes.extend_from_slice(float.to_bytes().as_ref()),
                    _ => bytes.extend_from_slice(f64::from(float).to_bytes().as_ref()),
                }
            }
            Literal::from_bytes(dtype, shape, bytes.into()).ok()
        }
        DType::Bool => {
            let ordinary = random_tensor(dtype, &[1], seed)?;
            Some(Literal::splat(shape, ordinary.elements::<bool>()?.first() == Some(&false)))
        }
        DType::Int8 => Some(Literal::splat(shape, ends(i8::MIN.into(), i8::MAX.into()) as i8)),
        DType::Int16 => Some(Literal::splat(shape, ends(i16::MIN.into(), i16::MAX.into()) as i16)),
        DType::Int32 => Some(Literal::splat(shape, ends(i32::MIN.into(), i32::MAX.into()) as i32)),
        DType::Int64 => Some(Literal::splat(shape, ends(i64::MIN, i64::MAX))),
        DType::UInt8 => Some(Literal::splat(shape, unsigned(u8::MAX.into()) as u8)),
        DType::UInt16 => Some(Literal::splat(shape, unsigned(u16::MAX.into()) as u16)),
        DType::UInt32 => Some(Literal::splat(shape, unsigned(u32::MAX.into()) as u32)),
        DType::UInt64 => Some(Literal::splat(shape, unsigned(u64::MAX))),
        _ => random_tensor(dtype, shape, seed),
    }
}

/// Returns the 64-bit FNV-1a hash of a text.
fn hash_of(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3))
}
