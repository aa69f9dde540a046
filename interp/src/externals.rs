//! Functions without a body, computed by closures.

use std::fmt;

use anfora_ir::{FunctionKey, Literal, Type, TypeId};
use rustc_hash::FxHashMap;

use crate::error::EvalErrorKind;
use crate::machine::{Machine, Step, ill_formed};
use crate::value::{Entry, Ref, ValueId};

/// A closure that computes a function: from its arguments, the result, or the fields of the tuple
/// that is the result. If it fails, it returns the reason.
type External = dyn Fn(&[Literal]) -> Result<Vec<Literal>, String> + Send + Sync;

/// Closures by symbol. A call of a declaration runs the closure of its symbol: of its attribute
/// `global_symbol`, or of its name if it has none.
///
/// ```
/// use anfora_interp::{Externals, Interpreter};
/// use anfora_ir::{Literal, Source, parse_module};
///
/// let text = "declare @twice(%x: float32) -> float32;
/// def @main(%x: float32) { add(@twice(%x), 1f) }";
/// let module = parse_module(Source::new("example", text), anfora_ops::standard())?;
/// let mut externals = Externals::new();
/// externals.insert("twice", |arguments: &[Literal]| {
///     let x = arguments[0].as_scalar::<f32>().ok_or("not a float")?;
///     Ok(vec![Literal::scalar(2.0 * x)])
/// });
/// let interpreter = Interpreter::new(&module).externals(&externals);
/// let outcome = interpreter.run("main", &[Literal::scalar(3f32)])?;
/// assert_eq!(outcome.tensor(), Some(&Literal::scalar(7f32)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct Externals {
    functions: FxHashMap<String, Box<External>>,
}

impl Externals {
    /// Returns no closures.
    pub fn new() -> Externals {
        Externals::default()
    }

    /// Adds the closure of a symbol, in the place of the one that the symbol had before.
    ///
    /// Its parameters and results are tensors; a function that returns a tuple returns the fields,
    /// which are tensors. If the results do not have the element types, ranks and constant extents
    /// of the declaration, the run fails. Symbolic extents are not compared.
    ///
    /// Cost: linear in the text.
    pub fn insert(
        &mut self,
        symbol: impl Into<String>,
        function: impl Fn(&[Literal]) -> Result<Vec<Literal>, String> + Send + Sync + 'static,
    ) {
        self.functions.insert(symbol.into(), Box::new(function));
    }
}

/// Prints the symbols, sorted.
impl fmt::Debug for Externals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut symbols: Vec<&String> = self.functions.keys().collect();
        symbols.sort_unstable();
        f.debug_set().entries(symbols).finish()
    }
}

impl Machine<'_> {
    /// Calls a declaration.
    pub(crate) fn call_external(&mut self, key: FunctionKey, arguments: &[Ref]) -> Step<Ref> {
        let Some(declaration) = self.module.get(key) else { return ill_formed("a function was removed") };
        let name = || self.module.name(key).to_string();
        let symbol = match declaration.global_symbol(self.cx) {
            Some(symbol) => self.cx.names.get(symbol),
            None => self.module.name(key),
        };
        let Some(function) = self.externals.and_then(|externals| externals.functions.get(symbol)) else {
            return Err(EvalErrorKind::External(name()));
        };
        let wanted = declaration.body.params().len();
        if arguments.len() != wanted {
            return Err(EvalErrorKind::ArgumentCount { wanted, found: arguments.len() });
        }
        let failed = |message: &str| EvalErrorKind::ExternalFailed { function: name(), message: message.to_string() };
        let tensors: Option<Vec<Literal>> = arguments.iter().map(|&argument| self.tensor(argument).cloned()).collect();
        let tensors = tensors.ok_or_else(|| failed("an argument is not a tensor"))?;
        let results = function(&tensors).map_err(|message| failed(&message))?;
        let Some(ty) = declaration.ret else { return ill_formed("a declaration states no result type") };
        let result = self.external_result(ty, results)?;
        match result {
            Some(result) if self.may_be_of(result, ty)? => Ok(result),
            _ => Err(failed(&format!("its result is not {}", self.wanted_text(ty)))),
        }
    }

    /// Returns tensors as the result of a function of result type `ty`; `None` if their number does
    /// not fit.
    fn external_result(&mut self, ty: TypeId, results: Vec<Literal>) -> Step<Option<Ref>> {
        let is_tuple = matches!(self.cx.types.get(ty), Type::Tuple(_));
        if !is_tuple && results.len() != 1 {
            return Ok(None);
        }
        let mut fields = Vec::with_capacity(results.len());
        for result in results {
            fields.push(self.insert(Entry::Tensor(result))?);
        }
        match fields.first() {
            Some(&single) if !is_tuple => Ok(Some(single)),
            _ => self.insert(Entry::Tuple(fields.into_iter().map(ValueId::from_ref).collect())).map(Some),
        }
    }
}
