//! The entry points of `anfora-visit` that rewrite by patterns, copy functions, and recurse on a
//! stack that grows.

use std::collections::BTreeMap;

use anfora::passes::to_a_normal_form;
use anfora::visit::pattern::{
    Match, Matcher, Outcome, PatternOptions, Rule, RuleSet, RuleText, any, any_literal, any_of, call, capture, global,
    literal, op, op_in, op_where, proj, rewrite_patterns, rewrite_rules, tuple,
};
use anfora::visit::{
    BackwardSweep, Binding, ExprFunctor, HoldsBody, Link, Memo, RewriteError, copy_between, copy_function,
    free_variables, hide_unused_outputs, insert_before, rules, split_and_convert, sweep_back,
};
use anfora_ir::{
    Body, DType, EntityId, Expr, ExprId, Module, OpId, Purity, Transplant, TypeId, Types, parse_fragment, parse_sketch,
};

use super::visiting::{each_function, verified};
use super::{Done, Kind, Row, ensure};
use crate::programs::{Shape, UnknownShape};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "match-patterns",
        covers: &[
            "visit::Matcher::new",
            "visit::Matcher::of_patterns",
            "visit::Matcher::at",
            "visit::Matcher::find_all",
            "visit::Captures::get",
            "visit::Captures::has",
            "visit::op_in",
        ],
        kind: Kind::Module(match_patterns),
    },
    Row {
        name: "rewrite-patterns",
        covers: &[
            "visit::rewrite_patterns",
            "visit::op",
            "visit::capture",
            "visit::Pattern::capture",
            "visit::Rewriter::ty",
            "visit::Rule::new",
            "visit::Rule::replace",
        ],
        kind: Kind::Module(rewrite_by_patterns),
    },
    Row {
        name: "deep-patterns",
        covers: &[
            "visit::any_of",
            "visit::call",
            "visit::global",
            "visit::op_where",
            "visit::proj",
            "visit::tuple",
            "visit::Pattern::attr",
            "visit::Pattern::attr_as",
            "visit::Pattern::attrs_where",
            "visit::Pattern::commutative",
            "visit::Pattern::dtype",
            "visit::Pattern::filter",
            "visit::Pattern::guard",
            "visit::Pattern::optional",
            "visit::Pattern::ordered",
            "visit::Pattern::rank",
            "visit::Pattern::same_type_as",
            "visit::Pattern::shape",
            "visit::Pattern::static_shape",
            "visit::Pattern::type_where",
            "visit::Pattern::used_once",
        ],
        kind: Kind::Size(deep_patterns),
    },
    Row {
        name: "rewrite-rules",
        covers: &[
            "visit::rewrite_rules",
            "visit::RuleSet::rule",
            "visit::RuleSet::rule_if",
            "visit::RuleText::new",
            "visit::RuleText::named",
            "visit::RuleText::value",
            "visit::RuleSet::replace",
            "visit::RuleSet::build",
            "visit::RuleSet::check",
            "visit::Captures::attr",
            "visit::Match::ty",
            "visit::Match::is_integer",
            "visit::Match::is_float",
            "visit::Match::has_type_of_root",
            "visit::Match::literal",
            "visit::Match::attr",
            "visit::Match::ints",
        ],
        kind: Kind::Module(rewrite_by_rules),
    },
    Row {
        name: "deep-rules",
        covers: &["ir::parse_sketch", "ir::SketchReader::read", "ir::parse_fragment"],
        kind: Kind::Size(deep_rules),
    },
    Row { name: "sweep-back", covers: &["visit::sweep_back"], kind: Kind::Module(sweep_everything) },
    Row { name: "convert-tuples", covers: &["visit::split_and_convert"], kind: Kind::Module(convert_tuples) },
    Row { name: "hide-outputs", covers: &["visit::hide_unused_outputs"], kind: Kind::Module(hide_outputs) },
    Row {
        name: "copy-function",
        covers: &["visit::copy_function", "visit::copy_between", "ir::Transplant::function"],
        kind: Kind::Module(copy_functions),
    },
    Row {
        name: "take-functions",
        covers: &["ir::Module::take_function", "ir::Transplant::from_module"],
        kind: Kind::Module(take_functions),
    },
    Row {
        name: "functor",
        covers: &[
            "visit::ExprFunctor::recurse",
            "visit::ExprFunctor::recurse_parts",
            "visit::ExprFunctor::recall",
            "visit::ExprFunctor::remember",
            "visit::ExprFunctor::visit_default",
        ],
        kind: Kind::Module(functor),
    },
];

fn match_patterns(mut module: Module) -> Done {
    let calls = op_in(["add", "multiply", "maximum", "subtract"], [capture("a"), any()]);
    let unary = op("tanh", [capture("a")]) | tuple([capture("a"), any()]);
    let keys = module.order().to_vec();
    for key in keys {
        let Some((function, cx)) = module.get_mut(key) else { continue };
        let alone = Matcher::new(cx, &function.body, &calls, None).map_err(|e| e.to_string())?.find_all();
        for (matcher, pattern) in Matcher::of_patterns(cx, &function.body, [&calls, &unary], None).into_iter().zip(0..)
        {
            let mut matcher = matcher.map_err(|e| e.to_string())?;
            let roots = matcher.find_all();
            ensure(pattern != 0 || roots == alone, "matches of a pattern do not depend on other patterns")?;
            for root in roots {
                let captures = matcher.at(root).ok_or("what is found matches")?;
                ensure(captures.has("a") && captures.get("a").is_some(), "what matches is captured")?;
            }
        }
    }
    Ok(())
}

fn rewritten(module: &mut Module, rules: &mut [Rule<'_>]) -> Result<Vec<Outcome>, String> {
    let purity = Purity::of_module(module);
    let options = PatternOptions { purity: Some(&purity), ..PatternOptions::default() };
    let mut outcomes = Vec::new();
    each_function(module, |editor| {
        outcomes.push(rewrite_patterns(editor, rules, &options).map_err(|e| e.to_string())?);
        Ok(())
    })?;
    Ok(outcomes)
}

fn rewrite_by_patterns(mut module: Module) -> Done {
    let one = || literal(1) | literal(1.0);
    let mut rules = [
        Rule::replace("x * 1", op("multiply", [capture("x"), one()]), capture("x")),
        Rule::replace("max(x, x)", op("maximum", [capture("x"), capture("x")]), capture("x")),
        Rule::replace("tanh(x)", op("tanh", [capture("x")]).capture("t"), op("sigmoid", [capture("x")])),
        Rule::new("x + c", op("add", [capture("x"), any_literal()]), |_, _| Ok(None)),
    ];
    rewritten(&mut module, &mut rules)?;
    verified(&module)
}

/// Matches a pattern that is as deep as the program is large and has every part that patterns can
/// have.
fn deep_patterns(size: usize) -> Done {
    // The depth is a multiple of 10, so that the root of the pattern is the same for all sizes.
    let depth = size / 10 * 10;
    let mut pattern = any_of([literal(7), literal(8.0), global("main")]).capture("inner");
    for i in 0..depth {
        pattern = match i % 10 {
            0 => op("add", [pattern, any()]).commutative(),
            1 => op("tanh", [pattern]).used_once(),
            2 => tuple([pattern, any()]),
            3 => proj(pattern, 0),
            4 => op_where(|row| row.commutative, [pattern, any()]).ordered(),
            5 => pattern.optional(|p| op("nn.relu", [p])),
            6 => any_of([pattern, literal(3)]),
            7 => op("sum", [pattern]).attr("keepdims", true).attr_as("axis", "a").attrs_where(|_| true).guard(|_| true),
            8 => call(any(), [pattern]),
            _ => pattern.dtype(DType::Float32).rank(1).shape(&[Some(8)]).static_shape().filter(|_| true),
        };
    }
    pattern = pattern.type_where(|_, _| true).same_type_as("inner");
    let mut rules = [Rule::replace("deep", pattern, literal(15))];
    let chain: Shape = "chain".parse().map_err(|e: UnknownShape| e.to_string())?;
    let mut module = chain.build(size, 1).map_err(|e| e.to_string())?;
    let outcomes = rewritten(&mut module, &mut rules)?;
    ensure(outcomes.iter().all(|o| o.rewrites == 0), "no program is that deep and ends like that")
}

/// Splits the parameters that are tuples and puts them together again, at any depth.
fn convert_tuples(mut module: Module) -> Done {
    each_function(&mut module, |editor| {
        let params: Vec<ExprId> = editor.body.params().iter().map(|param| param.expr()).collect();
        let mut bindings = Vec::new();
        for param in params {
            let ty = editor.body.ty(param);
            let to = any_leaves(&mut editor.cx.types, ty);
            let found = split_and_convert(
                editor,
                |editor| editor,
                param,
                to,
                &mut bindings,
                |_, leaf, _, _| Ok::<_, RewriteError>(leaf),
            );
            let value = found.map_err(|e| e.to_string())?;
            ensure(editor.body.type_of(value) == ty, "what is split and put together has the same type")?;
        }
        insert_before(editor, Link::Root, &bindings);
        Ok(())
    })?;
    verified(&module)
}

/// Returns a type with `Any` in the place of all that is no tuple.
fn any_leaves(types: &mut Types, ty: TypeId) -> TypeId {
    let mut parts: BTreeMap<usize, TypeId> = BTreeMap::new();
    let mut work = vec![ty];
    while let Some(part) = work.pop() {
        if parts.insert(part.index(), part).is_none() {
            work.extend(types.as_tuple(part).unwrap_or(&[]));
        }
    }
    // Types have larger ids than their parts.
    let mut done: BTreeMap<usize, TypeId> = BTreeMap::new();
    for (index, part) in parts {
        let new = match types.as_tuple(part) {
            Some(fields) => {
                let fields: Vec<TypeId> = fields.iter().map(|field| done[&field.index()]).collect();
                types.tuple(&fields)
            }
            None => types.any(),
        };
        done.insert(index, new);
    }
    done[&ty.index()]
}

/// Hides, in every region, the outputs that nothing outside of the region uses.
fn hide_outputs(mut module: Module) -> Done {
    each_function(&mut module, |editor| {
        hide_unused_outputs(editor.body, |_| true);
        ensure(hide_unused_outputs(editor.body, |_| true) == 0, "what is hidden is no output")
    })?;
    verified(&module)
}

fn rewrite_by_rules(mut module: Module) -> Done {
    let known = |m: &Match<'_>| {
        m.ty("x").is_some()
            && (m.is_integer("x") || m.is_float("x"))
            && m.has_type_of_root("x")
            && m.literal("x").is_none()
    };
    let any_axes = |m: &Match<'_>| m.attr("a").is_none() || m.ints("a").is_none() || m.captures().attr("a").is_some();
    let rules = rules![
        "multiply(%x, 1)" => "%x",
        "maximum(%x, %x)" => "%x", if known,
        "sum(negative(%x), axis=%a)" => "negative(sum(%x, axis=%a))", if any_axes,
    ]
    .rule("tanh(%x)", "sigmoid(%x)")
    .with_rule(RuleText::new("sin(%x)", "cos(%x)").named("sin"))
    .with_rule(RuleText::new("cos(%x)", "cosh(%x)").named("cos").only_if(|m| m.is_integer("x")))
    .with_rule(
        RuleText::new("sin(sin(%x))", "nn.elu(%x, alpha=%a)")
            .only_if(|m| m.is_last_use())
            .value("a", |m| m.is_float("x").then_some(0.5)),
    )
    .rule_if("add(%x, %k)", "subtract(%x, %k)", |m| m.literal("k").is_some())
    .replace("exp", op("exp", [capture("x")]), op("log", [capture("x")]))
    .build("x - c", op("subtract", [capture("x"), any_literal()]), |_, _| Ok(None));
    rules.check(&mut module.cx).map_err(|e| e.to_string())?;
    let purity = Purity::of_module(&module);
    let options = PatternOptions { purity: Some(&purity), trace: true, ..PatternOptions::default() };
    each_function(&mut module, |editor| {
        let outcome = rewrite_rules(editor, &rules, &options).map_err(|e| e.to_string())?;
        ensure(outcome.trace.len() as u64 >= outcome.rewrites, "each rewrite is in the trace")?;
        ensure(outcome.trace_remarks().count() == outcome.trace.len(), "each is a remark")
    })?;
    verified(&module)
}

/// Parses a rule and a block that are as deep as the program is large.
fn deep_rules(depth: usize) -> Done {
    let mut cx = Module::new(anfora_ops::standard()).cx;
    let mut text = String::new();
    (0..depth).for_each(|i| text.push_str(["tanh(", "add(1, ", "(("][i % 3]));
    text.push_str("%x");
    (0..depth).rev().for_each(|i| text.push_str([")", ")", "), %y)"][i % 3]));
    let sketch = parse_sketch(&text).map_err(|e| e.to_string())?;
    ensure(sketch.nodes().count() >= depth, "each call is a node")?;
    RuleSet::new().rule(&format!("exp({text})"), "%x").check(&mut cx).map_err(|e| e.to_string())?;
    let (open, close) = ("tanh(".repeat(depth), ")".repeat(depth));
    let fragment =
        parse_fragment("", &format!("{open}%x{close}"), anfora_ops::standard()).map_err(|e| e.to_string())?;
    ensure(fragment.functions().all(|(_, f)| f.body.params().len() == 1), "what nothing binds is a parameter")
}

/// Removes all bindings that no tail needs, including those with effects. Keeps casts, which bind
/// symbols.
fn sweep_everything(mut module: Module) -> Done {
    struct KeepCasts(Option<OpId>);
    impl BackwardSweep for KeepCasts {
        fn is_kept(&mut self, body: &Body, binding: Binding) -> bool {
            matches!(body.expr(binding.value), Expr::CallOp { op, .. } if Some(op) == self.0)
        }
    }
    let mut sweep = KeepCasts(module.cx.ops.find("match_cast"));
    each_function(&mut module, |editor| {
        to_a_normal_form(editor.cx, editor.body);
        sweep_back(editor.cx, editor.body, &mut sweep).map(drop).map_err(|e| e.to_string())
    })?;
    verified(&module)
}

/// Takes every function over into a new module, and checks that it is the same program.
fn take_functions(mut module: Module) -> Done {
    module.set_attrs(module.cx.attrs.empty());
    let mut taken = Module::new(module.cx.ops.registry().clone());
    for &key in module.order() {
        taken.take_function(&module, key, module.name(key)).map_err(|e| e.to_string())?;
    }
    ensure(anfora_ir::alpha_equal(&taken, &module), "what was taken over is the same program")?;
    verified(&taken)?;
    let mut copies = Module::new(module.cx.ops.registry().clone());
    for (key, function) in module.functions() {
        let transplant = Transplant::from_module(&mut copies.cx, &module, key);
        let copy = transplant.map_err(|e| e.to_string())?.function(&mut copies.cx, function);
        ensure(
            copy.body.len() == anfora_ir::live_nodes(&function.body, &copies.cx.scratch()),
            "a copy has what is linked to",
        )?;
        copies.add_named(module.name(key), copy).map_err(|_| "no function has the name")?;
    }
    ensure(copies.order().len() == module.order().len(), "each function has a copy there")
}

fn copy_functions(mut module: Module) -> Done {
    let keys = module.order().to_vec();
    for (i, &key) in keys.iter().enumerate() {
        copy_function(&mut module, key, &format!("copy_{i}")).map_err(|e| e.to_string())?;
    }
    ensure(module.order().len() == 2 * keys.len(), "each function has a copy")?;
    // Copies the block of each function once more, to the end of the arenas of the function's copy,
    // with the parameters of the copy.
    for (&key, &copy) in keys.iter().zip(&module.order()[keys.len()..].to_vec()) {
        let params = |key| module.get(key).map(|f| f.body.params().to_vec()).ok_or("a function is there");
        let (from, to) = (params(key)?, params(copy)?);
        let root = module.get(key).map(|f| f.body.root()).ok_or("a function is there")?;
        let mut transplant = Transplant::between_functions();
        for (&old, new) in from.iter().zip(&to) {
            transplant.replace(old.expr(), new.expr());
        }
        let block = copy_between(&mut transplant, &mut module, key, root, copy).map_err(|e| e.to_string())?;
        let body = module.get(copy).map(|f| &f.body).ok_or("a function is there")?;
        let free = free_variables(body, block);
        ensure(free.iter().all(|v| to.contains(v)), "a copy mentions nothing of the function that it is from")?;
    }
    verified(&module)
}

/// A functor that counts the expressions under an expression. It counts each node of a graph once.
struct Size<'b> {
    body: &'b Body,
    known: Memo<()>,
}

impl HoldsBody for Size<'_> {
    fn body(&self) -> &Body {
        self.body
    }
}

impl ExprFunctor for Size<'_> {
    type Output = usize;

    fn recall(&self, id: ExprId) -> Option<usize> {
        self.known.get(id).map(|()| 0)
    }

    fn remember(&mut self, id: ExprId, _: &usize) {
        self.known.insert(id, ());
    }

    fn visit_default(&mut self, id: ExprId) -> usize {
        let mut size = 1;
        self.recurse_parts(id, |_, part| size += part);
        size
    }
}

fn functor(module: Module) -> Done {
    for (_, function) in module.functions() {
        let body = &function.body;
        let mut size = Size { body, known: Memo::with_room(body) };
        ensure(size.recurse(body.root()) > 0, "there is something in every body")?;
    }
    Ok(())
}
