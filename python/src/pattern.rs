//! Patterns and rules.

use std::cell::RefCell;
use std::sync::Arc;

use anfora::ir::{self, AttrValue, Body, Context, Editor, ExprId, IntoDiagnostics, Number};
use anfora::visit::pattern::{self, Captures, PatternOptions, RuleError, rewrite_rules};
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use pyo3::{PyTraverseError, PyVisit};

use crate::block::edit_target;
use crate::errors::{self, PatternError};
use crate::expr::Expr;
use crate::frames::{self, Maker};
use crate::function::{Function, edit_all};
use crate::literal::{Literal, dtype_named, literal_of};
use crate::making::{making_methods, operand};
use crate::module::Module;
use crate::owner::{Home, Owner};
use crate::place;

thread_local! {
    /// The exception of a condition written in Python, until the search that called it ends.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// A description of expressions to look for. Operands that are variables are looked through to
/// their values.
#[pyclass(frozen, module = "anfora.pattern")]
pub(crate) struct Pattern {
    inner: pattern::Pattern,
}

fn of(inner: pattern::Pattern) -> Pattern {
    Pattern { inner }
}

/// Returns a pattern that is given as one, or as a number or a literal.
///
/// # Errors
/// `TypeError` for any other value.
fn pattern_of(value: &Bound<'_, PyAny>) -> PyResult<pattern::Pattern> {
    if let Ok(pattern) = value.cast::<Pattern>() {
        return Ok(pattern.get().inner.clone());
    }
    if let Ok(literal) = value.cast::<Literal>() {
        return Ok(pattern::literal(literal.get().inner.clone()));
    }
    if value.is_none() {
        return Ok(pattern::none());
    }
    match number_of(value)? {
        Some(number) => Ok(number_pattern(number)),
        None => {
            let name = value.get_type().qualname()?;
            Err(PyTypeError::new_err(format!("a pattern is made of patterns, numbers and literals, not {name}")))
        }
    }
}

fn number_of(value: &Bound<'_, PyAny>) -> PyResult<Option<Number>> {
    Ok(Some(if let Ok(v) = value.cast::<PyBool>() {
        Number::Bool(v.is_true())
    } else if value.is_instance_of::<PyInt>() {
        Number::Int(value.extract()?)
    } else if value.is_instance_of::<PyFloat>() {
        Number::Float(value.extract()?)
    } else {
        return Ok(None);
    }))
}

/// Returns the pattern for a number: a whole one is of any element type, as in the text of a rule.
fn number_pattern(number: Number) -> pattern::Pattern {
    match number {
        Number::Int(whole) => pattern::literal(pattern::LiteralValue::whole(whole)),
        other => pattern::literal(other),
    }
}

fn patterns_of(values: &Bound<'_, PyTuple>) -> PyResult<Vec<pattern::Pattern>> {
    values.iter().map(|value| pattern_of(&value)).collect()
}

/// Matches anything.
#[pyfunction]
#[pyo3(signature = () -> "Pattern")]
pub(crate) fn any_() -> Pattern {
    of(pattern::any())
}

/// Matches anything, and captures it. On the right side of a rule: the captured expression.
#[pyfunction]
#[pyo3(signature = (name: "str") -> "Pattern")]
pub(crate) fn capture(name: &str) -> Pattern {
    of(pattern::capture(name))
}

/// As the last operand: any number of further operands.
#[pyfunction]
#[pyo3(signature = () -> "Pattern")]
pub(crate) fn rest() -> Pattern {
    of(pattern::rest())
}

/// Matches a call of an operator.
#[pyfunction]
#[pyo3(signature = (name: "str", *operands: "Pattern | Literal | int | float | bool | None") -> "Pattern")]
pub(crate) fn op(name: &str, operands: &Bound<'_, PyTuple>) -> PyResult<Pattern> {
    Ok(of(pattern::op(name, patterns_of(operands)?)))
}

/// Matches a call of one of several operators.
#[pyfunction]
#[pyo3(signature = (names: "list[str]", *operands: "Pattern | Literal | int | float | bool | None") -> "Pattern")]
pub(crate) fn op_in(names: Vec<String>, operands: &Bound<'_, PyTuple>) -> PyResult<Pattern> {
    Ok(of(pattern::op_in(names.iter().map(String::as_str), patterns_of(operands)?)))
}

/// Matches a call of a function value.
#[pyfunction]
#[pyo3(signature = (function: "Pattern", *arguments: "Pattern | Literal | int | float | bool | None") -> "Pattern")]
pub(crate) fn call(function: &Bound<'_, PyAny>, arguments: &Bound<'_, PyTuple>) -> PyResult<Pattern> {
    Ok(of(pattern::call(pattern_of(function)?, patterns_of(arguments)?)))
}

/// Matches a tuple.
#[pyfunction]
#[pyo3(signature = (*fields: "Pattern | Literal | int | float | bool | None") -> "Pattern")]
pub(crate) fn tuple_(fields: &Bound<'_, PyTuple>) -> PyResult<Pattern> {
    Ok(of(pattern::tuple(patterns_of(fields)?)))
}

/// Matches the projection of a field of a tuple; of any field without an index.
#[pyfunction]
#[pyo3(signature = (tuple: "Pattern", index: "int | None" = None) -> "Pattern")]
pub(crate) fn tuple_getitem(tuple: &Bound<'_, PyAny>, index: Option<u32>) -> PyResult<Pattern> {
    Ok(of(pattern::proj(pattern_of(tuple)?, index)))
}

/// Matches if one of the patterns matches; they are tried in order.
#[pyfunction]
#[pyo3(signature = (*alternatives: "Pattern | Literal | int | float | bool | None") -> "Pattern")]
pub(crate) fn any_of(alternatives: &Bound<'_, PyTuple>) -> PyResult<Pattern> {
    if alternatives.is_empty() {
        return Err(PyValueError::new_err("any_of needs an alternative"));
    }
    Ok(of(pattern::any_of(patterns_of(alternatives)?)))
}

/// Matches a constant: a scalar, or one whose elements are all this number; a literal or an array
/// matches itself.
#[pyfunction]
#[pyo3(signature = (value: "typing.Any") -> "Pattern")]
pub(crate) fn literal(value: &Bound<'_, PyAny>) -> PyResult<Pattern> {
    Ok(of(match number_of(value)? {
        Some(number) => number_pattern(number),
        None => pattern::literal(literal_of(value, None)?),
    }))
}

/// Matches any constant.
#[pyfunction]
#[pyo3(signature = () -> "Pattern")]
pub(crate) fn any_literal() -> Pattern {
    of(pattern::any_literal())
}

/// Matches a global function.
#[pyfunction]
#[pyo3(signature = (name: "str") -> "Pattern")]
pub(crate) fn global_(name: &str) -> Pattern {
    of(pattern::global(name.trim_start_matches('@')))
}

/// Matches an operand that is left out.
#[pyfunction]
#[pyo3(signature = () -> "Pattern")]
pub(crate) fn none_() -> Pattern {
    of(pattern::none())
}

/// Returns a value as the value of an attribute in a pattern.
fn attribute(value: &Bound<'_, PyAny>) -> PyResult<AttrValue> {
    if let Ok(text) = value.cast::<PyString>() {
        let text = text.to_str()?;
        return Ok(match text.parse() {
            Ok(dtype) => AttrValue::DType(dtype),
            Err(()) => AttrValue::Str(text.to_string()),
        });
    }
    Ok(match number_of(value)? {
        Some(Number::Bool(v)) => AttrValue::Bool(v),
        Some(Number::Int(v)) => AttrValue::Int(v),
        Some(Number::Float(v)) => AttrValue::Float(v),
        None => match value.cast::<Literal>() {
            Ok(literal) => AttrValue::Literal(literal.get().inner.clone()),
            Err(_) => AttrValue::Ints(value.extract().map_err(|_| {
                PyTypeError::new_err("an attribute of a pattern is a number, a text, a list of integers or a Literal")
            })?),
        },
    })
}

#[pymethods]
impl Pattern {
    /// Captures the match of the pattern. If the name occurs twice, both are the same expression.
    #[pyo3(signature = (name: "str") -> "Pattern")]
    fn capture(&self, name: &str) -> Pattern {
        of(self.inner.clone().capture(name))
    }

    /// Restricts an attribute of a call; one that is left out has its default.
    #[pyo3(signature = (name: "str", value: "typing.Any") -> "Pattern")]
    fn attr(&self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<Pattern> {
        Ok(of(self.inner.clone().attr(name, attribute(value)?)))
    }

    /// Captures the value of an attribute, which the right side of a rule can use by the name.
    #[pyo3(signature = (name: "str", capture: "str") -> "Pattern")]
    fn attr_as(&self, name: &str, capture: &str) -> Pattern {
        of(self.inner.clone().attr_as(name, capture))
    }

    /// Restricts the element type.
    #[pyo3(signature = (dtype: "str") -> "Pattern")]
    fn dtype(&self, dtype: &str) -> PyResult<Pattern> {
        Ok(of(self.inner.clone().dtype(dtype_named(dtype)?)))
    }

    /// Restricts the number of extents.
    #[pyo3(signature = (rank: "int") -> "Pattern")]
    fn rank(&self, rank: usize) -> Pattern {
        of(self.inner.clone().rank(rank))
    }

    /// Restricts the extents; `None` is any extent.
    #[pyo3(signature = (extents: "list[int | None]") -> "Pattern")]
    fn shape(&self, extents: Vec<Option<usize>>) -> Pattern {
        of(self.inner.clone().shape(&extents))
    }

    /// Restricts the match to tensors whose extents are all numbers.
    #[pyo3(signature = () -> "Pattern")]
    fn static_shape(&self) -> Pattern {
        of(self.inner.clone().static_shape())
    }

    /// Restricts the match to expressions of the type of a capture.
    #[pyo3(signature = (capture: "str") -> "Pattern")]
    fn same_type_as(&self, capture: &str) -> Pattern {
        of(self.inner.clone().same_type_as(capture))
    }

    /// Restricts the match to expressions with one use.
    #[pyo3(signature = () -> "Pattern")]
    fn used_once(&self) -> Pattern {
        of(self.inner.clone().used_once())
    }

    /// Lets the operands match in either order.
    #[pyo3(signature = () -> "Pattern")]
    fn commutative(&self) -> Pattern {
        of(self.inner.clone().commutative())
    }

    /// Matches the operands only in the written order.
    #[pyo3(signature = () -> "Pattern")]
    fn ordered(&self) -> Pattern {
        of(self.inner.clone().ordered())
    }

    /// Matches the pattern, or `wrap(pattern)` around it, which is tried first.
    #[pyo3(signature = (wrap: "typing.Callable[[Pattern], Pattern]") -> "Pattern")]
    fn optional(&self, wrap: &Bound<'_, PyAny>) -> PyResult<Pattern> {
        let mut raised = None;
        let made = self.inner.clone().optional(|hole| {
            let wrapped = Bound::new(wrap.py(), of(hole)).and_then(|hole| pattern_of(&wrap.call1((hole,))?));
            wrapped.unwrap_or_else(|error| {
                raised = Some(error);
                pattern::any()
            })
        });
        raised.map_or(Ok(of(made)), Err)
    }

    /// Restricts the match by a function of all captures: `where(lambda m: m["x"].type.ndim == 4)`.
    #[pyo3(signature = (test: "typing.Callable[[Match], bool]") -> "Pattern")]
    fn r#where(&self, test: Py<PyAny>) -> Pattern {
        of(self.inner.clone().guard(move |found| {
            let (cx, body) = found.program();
            holds(&test, cx, body, found.root(), &found.captures())
        }))
    }

    fn __or__(&self, other: &Bound<'_, PyAny>) -> PyResult<Pattern> {
        Ok(of(self.inner.clone() | pattern_of(other)?))
    }

    fn __ror__(&self, other: &Bound<'_, PyAny>) -> PyResult<Pattern> {
        Ok(of(pattern_of(other)? | self.inner.clone()))
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.inner)
    }
}

/// Asks a condition that is written in Python. If it raises, the match fails, and the search
/// reports the exception when it ends.
fn holds(test: &Py<PyAny>, cx: &Context, body: &Body, root: ExprId, captures: &Captures<'_>) -> bool {
    if RAISED.with(|raised| raised.borrow().is_some()) {
        return false;
    }
    let number = frames::new_number();
    let answer = frames::lend_program(number, cx, body, || {
        Python::attach(|py| test.bind(py).call1((Match::lent(number, body, root, captures),))?.is_truthy())
    });
    answer.unwrap_or_else(|error| {
        place::at(cx, body, root, &error);
        RAISED.with(|raised| _ = raised.borrow_mut().get_or_insert(error));
        false
    })
}

/// Returns the exception that a condition raised since the last call.
fn raised() -> PyResult<()> {
    RAISED.with(|raised| raised.borrow_mut().take()).map_or(Ok(()), Err)
}

/// A capture of a pattern: one expression, or the list of `rest`.
enum Captured {
    One(ExprId),
    List(Vec<ExprId>),
}

/// A match of a pattern: the captures by name. In the function of a rule it also makes expressions.
#[pyclass(frozen, mapping, module = "anfora.pattern")]
pub(crate) struct Match {
    home: Home,
    root: ExprId,
    captures: Vec<(String, Captured)>,
}

impl Match {
    fn new(home: Home, body: &Body, root: ExprId, captures: &Captures<'_>) -> Match {
        let ones = captures.iter().map(|(name, id)| (name.to_string(), Captured::One(id)));
        let lists = captures.lists(body).map(|(name, ids)| (name.to_string(), Captured::List(ids.to_vec())));
        Match { home, root, captures: ones.chain(lists).collect() }
    }

    fn lent(number: u64, body: &Body, root: ExprId, captures: &Captures<'_>) -> Match {
        Match::new(Home::lent(number), body, root, captures)
    }

    fn making(slf: &Bound<'_, Self>, make: impl FnOnce(&mut dyn Maker, &Home) -> PyResult<ExprId>) -> PyResult<Expr> {
        let this = slf.get();
        let Owner::Lent(number) = this.home.owner else {
            return Err(PyTypeError::new_err(
                "expressions are made in the function of a rule, not from a match that was found",
            ));
        };
        let id = frames::with_maker(number, |maker| make(maker, &this.home))??;
        Ok(Expr::new(this.home.clone_ref(slf.py()), id))
    }
}

making_methods!(Match);

#[pymethods]
impl Match {
    /// The expression that the pattern matched.
    #[getter]
    fn root(&self, py: Python<'_>) -> Expr {
        Expr::new(self.home.clone_ref(py), self.root)
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let expr = |id: ExprId| Bound::new(py, Expr::new(self.home.clone_ref(py), id));
        match self.captures.iter().find(|(n, _)| n == name) {
            Some((_, Captured::One(id))) => Ok(expr(*id)?.into_any()),
            Some((_, Captured::List(ids))) => {
                Ok(PyList::new(py, ids.iter().map(|&id| expr(id)).collect::<PyResult<Vec<_>>>()?)?.into_any())
            }
            None => {
                let names = self.captures.iter().map(|(n, _)| n.as_str());
                let help = ir::did_you_mean(name, names).map_or_else(String::new, |n| format!("; did you mean {n:?}?"));
                Err(PyKeyError::new_err(format!("nothing was captured as {name:?}{help}")))
            }
        }
    }

    fn __contains__(&self, name: &str) -> bool {
        self.captures.iter().any(|(n, _)| n == name)
    }

    fn __len__(&self) -> usize {
        self.captures.len()
    }

    /// Returns the names of the captures.
    #[pyo3(signature = () -> "list[str]")]
    fn keys(&self) -> Vec<&str> {
        self.captures.iter().map(|(name, _)| name.as_str()).collect()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        PyList::new(py, self.keys())?.call_method0("__iter__")
    }
}

/// A rule: matches of `pattern` are replaced by `replacement`.
///
/// Both sides are patterns, or texts as in `Rule("x*1", "multiply(%x, 1)", "%x")`. The replacement
/// may also be a function of the match, which makes an expression or returns `None`. `where` is a
/// condition.
#[pyclass(frozen, module = "anfora.pattern")]
pub(crate) struct Rule {
    name: String,
    pattern: Py<PyAny>,
    replacement: Py<PyAny>,
    condition: Option<Py<PyAny>>,
}

#[pymethods]
impl Rule {
    #[new]
    #[pyo3(signature = (
        name: "str",
        pattern: "Pattern | str",
        replacement: "Pattern | str | Literal | int | float | bool | typing.Callable[[Match], typing.Any]",
        r#where: "typing.Callable[[Match], bool] | None" = None,
    ) -> "Rule")]
    fn new(
        name: String,
        pattern: Bound<'_, PyAny>,
        replacement: Bound<'_, PyAny>,
        r#where: Option<Py<PyAny>>,
    ) -> PyResult<Rule> {
        let (left, right) = (pattern.is_instance_of::<PyString>(), replacement.is_instance_of::<PyString>());
        if left != right {
            return Err(PyTypeError::new_err("a rule has two texts, or a pattern and what replaces it"));
        }
        Ok(Rule { name, pattern: pattern.unbind(), replacement: replacement.unbind(), condition: r#where })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.pattern)?;
        visit.call(&self.replacement)?;
        self.condition.iter().try_for_each(|condition| visit.call(condition))
    }

    /// The name, in counts and messages.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Rule({:?}, {}, {})", self.name, self.pattern.bind(py).repr()?, self.replacement.bind(py).repr()?))
    }
}

/// A test of a match for the toolkit.
fn test_of(condition: Py<PyAny>) -> impl Fn(&pattern::Match<'_>) -> bool + Send + Sync + 'static {
    move |found| {
        let (cx, body) = found.program();
        holds(&condition, cx, body, found.root(), &found.captures())
    }
}

impl Rule {
    /// Adds the rule to a set.
    fn add_to(&self, py: Python<'_>, set: pattern::RuleSet) -> PyResult<pattern::RuleSet> {
        let name = self.name.clone();
        let condition = self.condition.as_ref().map(|c| c.clone_ref(py));
        let (left, right) = (self.pattern.bind(py), self.replacement.bind(py));
        if let (Ok(left), Ok(right)) = (left.cast::<PyString>(), right.cast::<PyString>()) {
            let (left, right) = (left.to_str()?, right.to_str()?);
            let rule = pattern::RuleText::new(left, right).named(name);
            return Ok(set.with_rule(match condition {
                Some(condition) => rule.only_if(test_of(condition)),
                None => rule,
            }));
        }
        let left = pattern_of(left)?;
        let left = match condition {
            Some(condition) => left.guard(test_of(condition)),
            None => left,
        };
        if !right.is_callable() {
            return Ok(set.replace(name, left, pattern_of(right)?));
        }
        let build = right.clone().unbind();
        Ok(set.build(name, left, move |rewriter, captures| {
            let number = frames::new_number();
            let root = rewriter.root();
            let found = Match::lent(number, rewriter.program().1, root, captures);
            Python::attach(|py| {
                let made = frames::lend_maker(number, rewriter, || build.call1(py, (found,)))?.into_bound(py);
                if made.is_none() {
                    return Ok(None);
                }
                let home = Home::lent(number);
                let by = operand(rewriter, &home, &made, None)?;
                Ok(if by == root { None } else { Some(by) })
            })
            .map_err(|error: PyErr| Box::new(errors::Raised(error)) as RuleError)
        }))
    }
}

/// Rules that are applied together.
#[pyclass(frozen, module = "anfora.pattern")]
pub(crate) struct RuleSet {
    inner: Arc<pattern::RuleSet>,
}

/// Returns rules as a set: of a `RuleSet`, a `Rule`, or several of them.
fn rule_set(rules: &Bound<'_, PyAny>) -> PyResult<Arc<pattern::RuleSet>> {
    let py = rules.py();
    if let Ok(set) = rules.cast::<RuleSet>() {
        return Ok(set.get().inner.clone());
    }
    if let Ok(rule) = rules.cast::<Rule>() {
        return rule.get().add_to(py, pattern::RuleSet::new()).map(Arc::new);
    }
    let mut set = pattern::RuleSet::new();
    for rule in rules.try_iter()? {
        let rule = rule?;
        let rule: &Bound<'_, Rule> = rule.cast().map_err(|_| PyTypeError::new_err("rules are a RuleSet, or Rules"))?;
        set = rule.get().add_to(py, set)?;
    }
    Ok(Arc::new(set))
}

#[pymethods]
impl RuleSet {
    #[new]
    #[pyo3(signature = (rules: "collections.abc.Iterable[Rule]") -> "RuleSet")]
    fn new(rules: &Bound<'_, PyAny>) -> PyResult<RuleSet> {
        Ok(RuleSet { inner: rule_set(rules)? })
    }

    /// The names of the rules.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.inner.names().map(str::to_string).collect()
    }

    fn __len__(&self) -> usize {
        self.inner.names().len()
    }

    fn __repr__(&self) -> String {
        format!("<RuleSet of {} rules>", self.inner.names().len())
    }
}

/// Rewrites one body, and returns the number of rewrites by rule.
fn rewrite_body(editor: &mut Editor<'_>, rules: &pattern::RuleSet) -> PyResult<Vec<(String, u64)>> {
    let done = rewrite_rules(editor, rules, &PatternOptions::default());
    raised()?;
    rewritten(done).map_err(|error| place::at_stop(editor.cx, editor.body, error))
}

/// Returns the number of rewrites by rule, or the exception of a search that failed.
fn rewritten(done: Result<pattern::Outcome, pattern::PatternRewriteError>) -> PyResult<Vec<(String, u64)>> {
    match done {
        Ok(outcome) if outcome.was_taken_back() => {
            let said: Vec<String> = outcome.remarks().into_iter().map(|(_, remark)| remark.message).collect();
            Err(PatternError::new_err(said.join("; ")))
        }
        Ok(outcome) => Ok(outcome.rules.iter().map(|rule| (rule.name.to_string(), rule.rewrites)).collect()),
        Err(pattern::PatternRewriteError::Rule { error, .. }) if error.is::<errors::Raised>() => {
            Err(error.downcast::<errors::Raised>().map_or_else(|_| PatternError::new_err(()), |raised| raised.0))
        }
        Err(pattern::PatternRewriteError::Rules(found)) => {
            Err(Python::attach(|py| errors::from_diagnostics(py, &py.get_type::<PatternError>(), &found)))
        }
        Err(error) => Err(Python::attach(|py| {
            errors::from_diagnostics(py, &py.get_type::<PatternError>(), &error.into_diagnostics())
        })),
    }
}

/// Rewrites a function, a dataflow region or a module by rules, until none applies, and returns the
/// number of rewrites by rule.
#[pyfunction]
#[pyo3(signature = (target: "Function | Module | DataflowBlock", rules: "RuleSet | Rule | collections.abc.Iterable[Rule]") -> "dict[str, int]")]
pub(crate) fn _rewrite<'py>(target: &Bound<'py, PyAny>, rules: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let py = target.py();
    let rules = rule_set(rules)?;
    let mut counted: Vec<(String, u64)> = Vec::new();
    let mut add = |counts: Vec<(String, u64)>| {
        for (i, (name, n)) in counts.into_iter().enumerate() {
            match counted.get_mut(i) {
                Some(row) => row.1 += n,
                None => counted.push((name, n)),
            }
        }
    };
    match target.cast::<Module>() {
        Ok(module) => edit_all(module, |editor| rewrite_body(editor, &rules))?.into_iter().for_each(&mut add),
        Err(_) => add(edit_target(target, |editor| rewrite_body(editor, &rules))?),
    }
    let counts = PyDict::new(py);
    for (name, n) in counted {
        counts.set_item(name, n)?;
    }
    Ok(counts)
}

/// Finds the matches of a pattern in a function, in program order.
#[pyfunction]
#[pyo3(signature = (function: "Function", pattern: "Pattern") -> "list[Match]")]
pub(crate) fn _find<'py>(function: &Bound<'py, Function>, pattern: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
    let py = function.py();
    let pattern = pattern_of(pattern)?;
    let function = function.get();
    let home = function.home(py)?;
    let matches = function.read(|module, f| {
        // Names of operators in the pattern are looked up in a copy of the tables.
        let mut cx = module.cx.clone();
        let mut search = pattern::Matcher::new(&mut cx, &f.body, &pattern, None)
            .map_err(|error| PatternError::new_err(error.to_string()))?;
        let mut matches = Vec::new();
        for root in search.find_all() {
            if let Some(captures) = search.at(root) {
                matches.push(Match::new(home.clone_ref(py), &f.body, root, &captures));
            }
        }
        raised().inspect_err(|error| place::note(error, Some(module.name(function.key)), None))?;
        Ok(matches)
    });
    raised()?;
    PyList::new(py, matches?)
}
