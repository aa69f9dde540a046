//! Passes that consist of rules.

use anfora_ir::{Context, Function};
use anfora_manager::{ConfigDef, FunctionEdit, FunctionPass, ModuleView, PassContext, PassError};
use anfora_visit::pattern::{Outcome, PatternOptions, PatternRewriteError, RuleSet, rewrite_rules};

/// The setting under which passes that consist of rules report the changes of each rule as remarks.
pub const TRACE_RULES: ConfigDef =
    ConfigDef::flag("Rules.trace", "passes made of rules report each change of a rule as a remark");

/// The setting with the operators that passes that consist of rules must not make, such as those
/// that a model's version of the operators does not have.
pub const NEVER_MAKE: ConfigDef = ConfigDef::text_list(
    "Rules.never_make",
    &[],
    "operators that passes made of rules do not make; rules with one of them on the right do not apply",
);

/// A pass that consists of rules.
///
/// It counts the rewrites of each rule (`PassContext::count`, under the name of the rule). If a
/// limit is reached, everything is rolled back and remarks name the rules that still applied. Other
/// remarks name the rules whose replacement had a type that does not fit. With the setting
/// `Rules.trace`, remarks also report the changes of each rule.
///
/// ```
/// use anfora_ir::{Source, parse_module};
/// use anfora_manager::{FunctionPass, Pass, PassContext};
/// use anfora_passes::FromRules;
/// use anfora_visit::rules;
///
/// let pass = FunctionPass::from_rules("Simplify", 1, rules!["multiply(%x, 1)" => "%x"]);
/// let text = "def @main(%x: float32) { let %a = multiply(%x, 1f); tanh(%a) }";
/// let mut module = parse_module(Source::new("example", text), anfora_ops::standard())?;
/// let cx = PassContext::builder()
///     .registry(anfora_passes::registry())
///     .config("Rules.trace", true)
///     .build()?;
/// pass.apply(&mut module, &cx)?;
/// assert_eq!(cx.statistics().get("Simplify", "multiply(%x, 1) => %x"), 1);
/// let said = &cx.take_remarks()[0].diagnostic;
/// assert_eq!(said.binding.as_deref(), Some("a"));
/// assert!(said.message.ends_with("became `%x` by the rule `multiply(%x, 1) => %x`"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait FromRules: Sized {
    /// Returns a pass with this name that runs from this level on. A mistake in the rules is found
    /// when the pass first runs, which fails then.
    fn from_rules(name: impl Into<String>, opt_level: u8, rules: RuleSet) -> Self;
}

impl FromRules for FunctionPass {
    fn from_rules(name: impl Into<String>, opt_level: u8, rules: RuleSet) -> FunctionPass {
        FunctionPass::new(name, opt_level, move |edit, module, cx| run_rules(edit, module, cx, &rules))
    }
}

/// Returns the rules of a pass of this crate, if it consists of rules.
pub fn rules_of(pass: &str) -> Option<&'static RuleSet> {
    match pass {
        "SimplifyExpr" => Some(crate::simplify_expr::rules()),
        "FuseStandardOps" => Some(crate::fuse_standard_ops::rules()),
        _ => None,
    }
}

/// Runs a pass that consists of rules on a function.
pub(crate) fn run_rules(
    edit: &mut FunctionEdit<'_>,
    module: &ModuleView<'_>,
    cx: &PassContext,
    rules: &RuleSet,
) -> Result<(), PassError> {
    if edit.function.is_primitive(edit.cx) {
        return Ok(());
    }
    let never_make: Vec<String> = cx.config_of(&NEVER_MAKE)?;
    let purity = Some(module.purity());
    let options =
        PatternOptions { purity, trace: cx.config_of(&TRACE_RULES)?, never_make: &never_make, ..Default::default() };
    let outcome = simplify_by(edit.cx, edit.function, rules, &options)?;
    if !outcome.was_taken_back() {
        for (i, rule) in outcome.rules.iter().enumerate().filter(|(_, rule)| rule.rewrites > 0) {
            cx.count(rules.static_name(i).unwrap_or("rules that were made when the pass was"), rule.rewrites);
        }
    }
    edit.report_all(outcome.remarks());
    if !outcome.was_taken_back() {
        edit.report_all(outcome.trace_remarks());
    }
    Ok(())
}

/// Rewrites a function by rules.
pub(crate) fn simplify_by(
    cx: &mut Context,
    function: &mut Function,
    rules: &RuleSet,
    options: &PatternOptions<'_>,
) -> Result<Outcome, PatternRewriteError> {
    rewrite_rules(&mut anfora_ir::Editor::new(cx, &mut function.body), rules, options)
}
