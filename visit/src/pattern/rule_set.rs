//! Rules that do not change from run to run, most of them written as text.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use anfora_ir::{Context, Diagnostic, Diagnostics, ExprId, OpRegistry, SketchReader, Source};

use crate::pattern::build::Pattern;
use crate::pattern::captures::Captures;
use crate::pattern::error::Side;
use crate::pattern::guard::Match;
use crate::pattern::rewriter::Rewriter;
use crate::pattern::rule::{Built, ReadyRule, Right, RuleError, RuleTable};
use crate::pattern::rule_text::{ComputedValues, RuleText};
use crate::pattern::text::parse_sides;

/// Rules that are made once for many runs. A pass has one set, which its threads share.
/// [`rules!`](crate::rules) makes a set.
///
/// # The text of rules
/// Both sides are expressions of the text format in which locals are holes, such as
/// `multiply(%x, 1)` and `%x`:
///
/// | text | on the left, it matches | on the right, it makes |
/// |---|---|---|
/// | `%x` | any expression, with a name | the expression that the name matched |
/// | `%_` | any expression | |
/// | `add(%x, %y)` | a call | the call |
/// | `sum(%x, axis=[1])` | only with this value of the attribute | the call with it |
/// | `sum(%x, axis=%a)` | with any value of the attribute, named | with the value of that name |
/// | `sum(%x, axis=none)` | only if the attribute is omitted or has its default | |
/// | `1`, `-2` | a scalar or splat of this number, of any element type | a scalar |
/// | `0` | the zero of integers only: floats have two | a scalar |
/// | `1f`, `-0f16`, `true` | a scalar or splat of this element type and these bits | a scalar |
/// | `dense<Tensor[(2,), int64]>[1, 2]`, `"text"` | this tensor | it |
/// | `(%x, %y)` | a tuple | the same |
/// | `%t.0` | a projection | the same |
/// | `@f(%x)`, `%f(%x)` | a call | the same |
/// | `none` | an omitted operand | the same |
///
/// A hole on the right may also stand for a value that is computed from the match
/// ([`RuleText::value`]; in [`rules!`](crate::rules), `let r = |m| …`): that of an attribute, or a
/// constant operand. If the value is `None`, the rule does not apply.
///
/// A name that is written twice on the left matches the same expression, or the same value of an
/// attribute, at both places. The operands of a commutative operator match in either order. If an
/// operand is a variable, the matcher looks through it to its value. An attribute that is not
/// written may have any value on the left, and has its default on the right. A number without an
/// element type becomes a scalar of the element type of the replaced expression.
///
/// A splat of several elements matches only if the extents of the replaced node are known. For
/// operands of unknown extents, the effect of the splat on the shape is not known.
///
/// An operator without a row, such as one that a reader of a file keeps as it is, may be the
/// outermost one on the right. The call has the type of the replaced expression.
///
/// A mistake in a text is found when the set is made, a wrong operator or attribute when the set is
/// used or [checked](RuleSet::check). Both are reported with their places in
/// [`text`](RuleSet::text).
#[derive(Default)]
pub struct RuleSet {
    rules: Vec<SharedRule>,
    /// The texts of the written rules, one after the other.
    text: String,
    mistakes: Vec<Diagnostic>,
    /// Reads the texts of all rules with one set of tables.
    reader: SketchReader,
    /// The rules compiled for modules with this registry.
    ready: Mutex<Option<(Arc<OpRegistry>, Arc<RuleTable>)>>,
}

type SharedBuild = dyn Fn(&mut Rewriter<'_, '_>, &Captures<'_>) -> Built + Send + Sync;

struct SharedRule {
    name: Cow<'static, str>,
    pattern: Pattern,
    right: Right<Box<SharedBuild>>,
    left_places: Vec<Range<usize>>,
    right_places: Vec<Range<usize>>,
}

impl RuleSet {
    /// Returns a set without rules.
    pub fn new() -> RuleSet {
        RuleSet::default()
    }

    /// Adds a rule in text that replaces `left` by `right`. Its name is `left => right`.
    #[must_use]
    pub fn rule(self, left: &str, right: &str) -> RuleSet {
        self.with_rule(RuleText::new(left, right))
    }

    /// Adds a rule in text that applies only to matches that pass a test.
    #[must_use]
    pub fn rule_if(
        self,
        left: &str,
        right: &str,
        test: impl Fn(&Match<'_>) -> bool + Send + Sync + 'static,
    ) -> RuleSet {
        self.with_rule(RuleText::new(left, right).only_if(test))
    }

    /// Adds a rule with a pattern as its right side, as
    /// [`Rule::replace`](crate::pattern::Rule::replace).
    #[must_use]
    pub fn replace(mut self, name: impl Into<Cow<'static, str>>, pattern: Pattern, by: Pattern) -> RuleSet {
        self.push(name.into(), pattern, Right::Written(by, ComputedValues::default()), Default::default());
        self
    }

    /// Adds a rule whose right side is Rust code, as [`Rule::new`](crate::pattern::Rule::new).
    #[must_use]
    pub fn build(
        mut self,
        name: impl Into<Cow<'static, str>>,
        pattern: Pattern,
        build: impl Fn(&mut Rewriter<'_, '_>, &Captures<'_>) -> Result<Option<ExprId>, RuleError> + Send + Sync + 'static,
    ) -> RuleSet {
        self.push(name.into(), pattern, Right::Built(Box::new(build)), Default::default());
        self
    }

    /// Adds the rules of another set.
    #[must_use]
    pub fn and(mut self, other: RuleSet) -> RuleSet {
        self.ready = Mutex::default();
        let offset = self.text.len();
        self.text.push_str(&other.text);
        self.mistakes.extend(other.mistakes.into_iter().map(|mistake| moved(mistake, offset)));
        self.rules.extend(other.rules.into_iter().map(|mut rule| {
            for place in rule.left_places.iter_mut().chain(&mut rule.right_places) {
                *place = place.start + offset..place.end + offset;
            }
            rule
        }));
        self
    }

    /// Returns the names of the rules, in order. A rule with a mistake in its text has no name.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.rules.iter().map(|rule| &*rule.name)
    }

    /// Returns the name of a rule if it is a static string; passes count its rewrites under this
    /// name. `None` if the name was built at run time.
    pub fn static_name(&self, rule: usize) -> Option<&'static str> {
        match self.rules.get(rule)?.name {
            Cow::Borrowed(name) => Some(name),
            Cow::Owned(_) => None,
        }
    }

    /// Returns the texts of the rules, one after the other. The places of mistakes refer to this
    /// text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Checks all rules against the operators of a module.
    ///
    /// # Errors
    /// All mistakes.
    ///
    /// ```
    /// use anfora_ir::{Context, OpRegistry};
    /// use anfora_visit::rules;
    ///
    /// let mut cx = Context::new(anfora_ops::standard());
    /// let rules = rules!["multply(%x, 1)" => "%x", "add(%x, 0)" => "%y"];
    /// let mistakes = rules.check(&mut cx).unwrap_err();
    /// assert_eq!(mistakes[0].message, "unknown operator `multply`");
    /// assert_eq!(mistakes[0].help.as_deref(), Some("did you mean `multiply`?"));
    /// assert_eq!(
    ///     mistakes[1].message,
    ///     "`%y` occurs on the right, but nothing on the left binds it"
    /// );
    /// assert!(mistakes.to_string().contains("rules:1:1"));
    /// ```
    pub fn check(&self, cx: &mut Context) -> Result<(), Diagnostics> {
        self.ready(cx).map(drop)
    }

    /// Returns the rules compiled for a run. They are compiled once for all modules with the same
    /// registry if they are portable.
    pub(crate) fn ready(&self, cx: &mut Context) -> Result<Arc<RuleTable>, Diagnostics> {
        let lock = || self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().clone().filter(|(registry, _)| Arc::ptr_eq(registry, cx.ops.registry()));
        if let Some((_, table)) = known {
            return Ok(table);
        }
        let table = Arc::new(self.make_ready(cx)?);
        if table.is_portable {
            *lock() = Some((Arc::clone(cx.ops.registry()), Arc::clone(&table)));
        }
        Ok(table)
    }

    fn make_ready(&self, cx: &mut Context) -> Result<RuleTable, Diagnostics> {
        let mut mistakes = self.mistakes.clone();
        let mut all = Vec::with_capacity(self.rules.len());
        for rule in &self.rules {
            match ReadyRule::new(cx, rule.name.clone(), &rule.pattern, &rule.right) {
                Ok(ready) => all.push(ready),
                Err((refused, side)) => {
                    let places = if side == Side::Left { &rule.left_places } else { &rule.right_places };
                    let (message, help) = refused.error.message_and_help();
                    let mistake = match places.get(refused.node as usize) {
                        Some(place) => Diagnostic::error(message).at(place.clone()),
                        None => Diagnostic::error(format!("the rule `{}`: {message}", rule.name)),
                    };
                    mistakes.push(Diagnostic { help, ..mistake });
                }
            }
        }
        mistakes.sort_by_key(|mistake| mistake.span.as_ref().map_or(usize::MAX, |place| place.start));
        match mistakes.is_empty() {
            true => Ok(RuleTable::new(all)),
            false => Err(Diagnostics::in_source(mistakes, Some(Arc::new(Source::new("rules", &*self.text))))),
        }
    }

    /// Makes the replacement of a rule whose right side is code.
    pub(crate) fn build_by(&self, rule: usize, rewriter: &mut Rewriter<'_, '_>, captures: &Captures<'_>) -> Built {
        match self.rules.get(rule).map(|rule| &rule.right) {
            Some(Right::Built(build)) => build(rewriter, captures),
            _ => Ok(None),
        }
    }

    /// Adds a rule in text.
    #[must_use]
    pub fn with_rule(mut self, rule: RuleText) -> RuleSet {
        let RuleText { name, left, right, test, computed } = rule;
        let left_at = self.text.len();
        let right_at = left_at + left.len() + " => ".len();
        self.text.extend([&left, " => ", &right, "\n"]);
        let placed = |places: Vec<Range<usize>>, at: usize| {
            places.into_iter().map(|place| place.start + at..place.end + at).collect()
        };
        match parse_sides(&mut self.reader, &left, &right, &computed) {
            Ok((left, right)) => {
                let places = [placed(left.places, left_at), placed(right.places, right_at)];
                let pattern = match test {
                    Some(test) => left.pattern.guard_by(test),
                    None => left.pattern,
                };
                self.push(name, pattern, Right::Written(right.pattern, computed), places);
            }
            Err(mistakes) => self.mistakes.extend(
                mistakes
                    .into_iter()
                    .map(|(is_right, mistake)| moved(mistake, if is_right { right_at } else { left_at })),
            ),
        }
        self
    }

    fn push(
        &mut self,
        name: Cow<'static, str>,
        pattern: Pattern,
        right: Right<Box<SharedBuild>>,
        [left_places, right_places]: [Vec<Range<usize>>; 2],
    ) {
        self.ready = Mutex::default();
        self.rules.push(SharedRule { name, pattern, right, left_places, right_places });
    }
}

/// Returns a message whose places are shifted by `by` bytes.
fn moved(mut mistake: Diagnostic, by: usize) -> Diagnostic {
    let later = |place: Range<usize>| place.start + by..place.end + by;
    mistake.span = mistake.span.map(later);
    for (place, _) in &mut mistake.related {
        *place = later(place.clone());
    }
    mistake
}

/// Rewrites mistakes in rules for a report whose source is a program: each message names its rule
/// and the column in it.
pub(crate) fn without_source(mistakes: Diagnostics) -> Diagnostics {
    let source = mistakes.source().cloned();
    let text = source.as_ref().map_or("", |source| source.text());
    let told = mistakes.into_iter().map(|mut mistake| {
        if let Some(place) = mistake.span.take()
            && let (Some(before), Some(after)) = (text.get(..place.start), text.get(place.start..))
        {
            let start = before.rfind('\n').map_or(0, |at| at + 1);
            let end = place.start + after.find('\n').unwrap_or(after.len());
            let column = 1 + text[start..place.start].chars().count();
            mistake.message = format!("{}, at column {column} of the rule `{}`", mistake.message, &text[start..end]);
        }
        mistake.related.clear();
        mistake
    });
    told.collect()
}

impl std::fmt::Debug for RuleSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

/// Makes a [`RuleSet`] of rules in text, some of which have conditions or computed values. Adjacent
/// literals are one text, for rules that a macro makes:
///
/// ```
/// use anfora_visit::rules;
///
/// let rules = rules![
///     "multiply(%x, 1)" => "%x",
///     "add(multiply(%x, %a), multiply(%x, %b))" => "multiply(%x, add(%a, %b))",
///         if |m| m.is_integer("x"),
///     "nn.elu(%x, alpha=%a)" => "nn.celu(%x, alpha=%b)", let b = |m| Some(m.float("a")? * 2.0),
///     "nn.global_avg_pool" "2d(%x)" => "mean(%x, axes=[2, 3], keepdims=true)",
/// ];
/// assert_eq!(rules.names().next(), Some("multiply(%x, 1) => %x"));
/// ```
#[macro_export]
macro_rules! rules {
    ($($($left:literal)+ => $($right:literal)+ $(, if $test:expr)? $(, let $name:ident = $value:expr)*),* $(,)?) => {
        $crate::pattern::RuleSet::new()$(.with_rule(
            $crate::pattern::RuleText::new(concat!($($left),+), concat!($($right),+))
                .named(concat!($($left,)+ " => ", $($right),+))
                $(.only_if($test).condition(stringify!($test)))?
                $(.value(stringify!($name), $value))*
        ))*
    };
}
