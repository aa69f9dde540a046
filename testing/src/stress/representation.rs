//! The entry points of `anfora-ir`.

use std::fmt::Write;

use anfora_ir::bumpalo::Bump;
use anfora_ir::{
    AlphaHasher, AlphaOptions, Body, BodyPurity, Context, Counts, Cursor, DType, Diagnostic, Diagnostics, DimOp,
    Editor, EntityId, Expr, ExprId, FreeSymbols, FunctionKey, LazyBodyPurity, Literal, Module, ModuleText, NameSupply,
    NewParameter, OperandList, PrintOptions, Purity, RenderOptions, Retype, SeenParts, Severity, SignatureChange,
    Source, Step, SubstitutedParts, SymbolSubstitution, SymbolWalk, TypeId, alpha_equal, alpha_equal_exprs, calls_of,
    change_signature, change_signatures, compact_body, diagnostics_json, diff as module_differences, diff_with,
    edit_regions, expr_extent, first_difference, first_difference_with, infer_expr, infer_module, is_sparse,
    live_nodes, module_hash, parse_attr, parse_module, parse_module_on, parse_type, print_function, print_module,
    render_diagnostics, render_module_diagnostics, retype_from, unified_diff, update_signatures,
    update_signatures_with, verify_function, verify_functions, verify_module, write_module, write_module_on,
};

use super::{Done, Kind, Row, ensure};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "build",
        covers: &[
            "ir::FunctionBuilder::new",
            "ir::FunctionBuilder::attr",
            "ir::FunctionBuilder::param",
            "ir::FunctionBuilder::call_op",
            "ir::FunctionBuilder::call",
            "ir::FunctionBuilder::tuple",
            "ir::FunctionBuilder::proj",
            "ir::FunctionBuilder::if_",
            "ir::FunctionBuilder::bind",
            "ir::FunctionBuilder::end_dataflow",
            "ir::FunctionBuilder::close_block",
            "ir::FunctionBuilder::open_lambda",
            "ir::FunctionBuilder::close_lambda",
            "ir::FunctionBuilder::finish",
            "ir::Editor::call_op",
            "ir::Editor::call",
            "ir::Editor::tuple",
            "ir::Editor::proj",
            "ir::Editor::if_",
            "ir::Editor::lambda",
            "ir::Module::add",
        ],
        kind: Kind::Build,
    },
    Row { name: "drop", covers: &[], kind: Kind::Module(drop_module) },
    Row { name: "diff", covers: &["ir::unified_diff", "ir::write_unified_diff"], kind: Kind::Module(diff) },
    Row { name: "differences", covers: &["ir::diff", "ir::diff_with"], kind: Kind::Module(differences) },
    Row { name: "clone", covers: &[], kind: Kind::Module(clone_module) },
    Row { name: "debug", covers: &[], kind: Kind::Module(debug) },
    Row {
        name: "print",
        covers: &[
            "ir::Module::to_text",
            "ir::ModuleText::new",
            "ir::print_module",
            "ir::print_function",
            "ir::write_module",
        ],
        kind: Kind::Module(print),
    },
    Row { name: "edit-regions", covers: &["ir::edit_regions"], kind: Kind::Module(change_regions) },
    Row { name: "parse", covers: &["ir::parse_module"], kind: Kind::Text(parse) },
    Row { name: "parse-cut-off", covers: &["ir::render_diagnostics"], kind: Kind::Text(parse_cut_off) },
    Row {
        name: "round-trip",
        covers: &[
            "ir::write_module_on",
            "ir::parse_module_on",
            "ir::alpha_equal",
            "ir::first_difference",
            "ir::first_difference_with",
        ],
        kind: Kind::Module(round_trip),
    },
    Row { name: "hash", covers: &["ir::module_hash"], kind: Kind::Module(hash) },
    Row {
        name: "alpha-hash",
        covers: &["ir::AlphaHasher::hash", "ir::AlphaHasher::forget", "ir::alpha_equal_exprs"],
        kind: Kind::Module(alpha_hash),
    },
    Row {
        name: "verify",
        covers: &["ir::verify_module", "ir::verify_function", "ir::verify_functions"],
        kind: Kind::Module(verify),
    },
    Row {
        name: "compact",
        covers: &[
            "ir::Module::compact",
            "ir::compact_body",
            "ir::live_nodes",
            "ir::is_sparse",
            "ir::Remap::expr",
            "ir::Remap::var",
        ],
        kind: Kind::Module(compact),
    },
    Row {
        name: "count",
        covers: &["ir::Counts::of_module", "ir::Counts::of_body", "ir::Body::tail", "ir::Body::type_of"],
        kind: Kind::Module(count),
    },
    Row {
        name: "purity",
        covers: &[
            "ir::Purity::of_module",
            "ir::Purity::of_module_where",
            "ir::EffectScan::new",
            "ir::EffectScan::may_have_effects",
            "ir::Purity::attrs_are_pure",
            "ir::BodyPurity::new",
            "ir::BodyPurity::is_impure",
            "ir::BodyPurity::is_impure_call",
            "ir::LazyBodyPurity::is_impure",
        ],
        kind: Kind::Module(purity),
    },
    Row {
        name: "cursor",
        covers: &[
            "ir::Cursor::new",
            "ir::Cursor::at",
            "ir::Cursor::with_regions",
            "ir::Cursor::with_regions_at",
            "ir::Cursor::next",
            "ir::Cursor::enter",
        ],
        kind: Kind::Module(cursor),
    },
    Row {
        name: "infer",
        covers: &[
            "ir::infer_expr",
            "ir::infer_op",
            "ir::infer_call",
            "ir::lambda_type",
            "ir::signature_type",
            "ir::infer_module",
            "ir::Editor::refresh_type",
        ],
        kind: Kind::Module(infer),
    },
    Row {
        name: "retype",
        covers: &["ir::retype_from", "ir::Retype::new", "ir::Retype::changed", "ir::Retype::sweep"],
        kind: Kind::Module(retype),
    },
    Row {
        name: "signatures",
        covers: &[
            "ir::Body::binding_name",
            "ir::Function::signature",
            "ir::calls_of",
            "ir::change_signature",
            "ir::change_signatures",
            "ir::update_signatures",
            "ir::update_signatures_with",
            "ir::NewParameter::constant",
            "ir::NewParameter::new",
        ],
        kind: Kind::Module(signatures),
    },
    Row {
        name: "types",
        covers: &[
            "ir::Types::accepts",
            "ir::Types::join",
            "ir::Types::substitute",
            "ir::Types::substitute_in",
            "ir::Types::instantiate",
            "ir::Types::without_elements",
            "ir::Types::for_each_symbol",
            "ir::Types::for_each_new_symbol",
            "ir::Types::for_each_binding_symbol",
            "ir::Types::for_each_dim_beside",
            "ir::Types::is_symbolic",
            "ir::Types::static_bytes",
            "ir::Types::static_shape",
            "ir::Types::tuple",
            "ir::Types::function",
            "ir::Context::type_text",
        ],
        kind: Kind::Module(types),
    },
    Row { name: "deep-types", covers: &["ir::parse_type"], kind: Kind::Size(deep_types) },
    Row {
        name: "symbols",
        covers: &[
            "ir::SymbolWalk::in_type",
            "ir::SymbolWalk::in_attrs",
            "ir::SymbolWalk::in_node",
            "ir::FreeSymbols::of",
            "ir::AttrWalk::add",
            "ir::AttrWalk::next",
            "ir::SymbolSubstitution::ty",
            "ir::SymbolSubstitution::attrs",
            "ir::SymbolSubstitution::in_body",
            "ir::SymbolSubstitution::in_function",
            "ir::NameSupply::new",
        ],
        kind: Kind::Module(symbols),
    },
    Row {
        name: "dimensions",
        covers: &[
            "ir::Dims::add",
            "ir::Dims::sub",
            "ir::Dims::mul",
            "ir::Dims::op",
            "ir::Dims::substitute",
            "ir::Dims::for_each_symbol",
            "ir::Dims::is_symbolic",
            "ir::Dims::as_constant",
            "ir::Dims::symbol",
            "ir::Context::dim_text",
        ],
        kind: Kind::Size(dimensions),
    },
    Row {
        name: "attributes",
        covers: &["ir::parse_attr", "ir::Context::attr", "ir::Context::attrs", "ir::Context::with_attr"],
        kind: Kind::Size(attributes),
    },
    Row {
        name: "rollback",
        covers: &[
            "ir::Module::begin_edit",
            "ir::Module::rollback",
            "ir::Module::commit",
            "ir::Module::has_changes",
            "ir::Module::is_edited",
            "ir::Module::affected_functions",
            "ir::Body::take_edited_shared",
            "ir::Body::begin_journal",
            "ir::Body::commit_journal",
            "ir::Body::rollback_journal",
            "ir::Body::replace",
            "ir::Body::edit_size",
            "ir::Body::is_edited",
        ],
        kind: Kind::Module(rollback),
    },
    Row {
        name: "diagnostics",
        covers: &["ir::render_module_diagnostics", "ir::diagnostics_json", "ir::expr_extent"],
        kind: Kind::Module(diagnostics),
    },
];

/// Returns the first of several diagnostics as text.
fn first(errors: &[Diagnostic]) -> String {
    errors.first().map_or_else(|| "failed without a diagnostic".to_string(), |e| e.to_string())
}

fn drop_module(module: Module) -> Done {
    drop(module);
    Ok(())
}

fn clone_module(module: Module) -> Done {
    ensure(module.clone().order() == module.order(), "a clone has the same functions")
}

fn diff(module: Module) -> Done {
    let text = module.to_text();
    let other = text.replacen("let", "let ", 1);
    let diff = unified_diff(["module", "other"], &text, &other);
    ensure(diff.is_empty() == (text == other), "texts that differ have a diff")?;
    // The texts differ in one space, so the diff removes one line and adds one.
    let changed = |sign: char| {
        let lines = diff.lines().skip(2).filter(move |line| line.starts_with(sign));
        lines.map(|line| &line[1..]).collect::<Vec<&str>>()
    };
    let (gone, come) = (changed('-'), changed('+'));
    ensure(gone.len() == come.len() && gone.len() <= 1, "a change of one line is a diff of one line")?;
    let is_right = |(gone, come): (&&str, &&str)| gone.replacen("let", "let ", 1) == **come;
    ensure(gone.iter().zip(&come).all(is_right), "the line that comes is the one that was changed")
}

/// Compares a program with itself, and with a copy in which each function returns `()`.
fn differences(module: Module) -> Done {
    ensure(module_differences(&module, &module.clone()).is_empty(), "a program does not differ from itself")?;
    let mut other = module.clone();
    let (functions, cx) = other.get_all_mut();
    for (_, function) in functions {
        let body = &mut function.body;
        let unit = body.push(Expr::Tuple(OperandList::EMPTY), cx.types.unit(), None);
        let mut last = None;
        let mut at = body.root();
        while let Expr::Let { body: rest, .. } = body.expr(at) {
            (last, at) = (Some(at), rest);
        }
        match last {
            Some(last) => body.set_let_body(last, unit),
            None => body.set_root(unit),
        }
    }
    let found = diff_with(&module, &other, AlphaOptions::default());
    ensure(found.is_empty() == alpha_equal(&module, &other), "different programs have differences")?;
    ensure(found.is_empty() == found.to_string().is_empty() && !found.to_json().is_empty(), "they can be shown")
}

/// A writer that counts the bytes written to it.
#[derive(Default)]
struct Length(usize);

impl std::fmt::Write for Length {
    fn write_str(&mut self, s: &str) -> std::fmt::Result {
        self.0 += s.len();
        Ok(())
    }
}

fn debug(module: Module) -> Done {
    let mut length = Length::default();
    let mut show = |what: &dyn std::fmt::Debug| write!(length, "{what:?}").map_err(|e| e.to_string());
    show(&module)?;
    for (_, function) in module.functions() {
        show(function)?;
        for expr in function.body.exprs() {
            show(&expr)?;
        }
    }
    for ty in module.cx.types.iter() {
        show(&ty)?;
    }
    for attr in module.cx.attrs.iter() {
        show(&attr)?;
    }
    ensure(length.0 > 0, "there is something to show")
}

fn print(module: Module) -> Done {
    let text = module.to_text();
    let options = PrintOptions::default();
    let mut formatted = String::with_capacity(text.len());
    print_module(&module, &options, &mut formatted).map_err(|e| e.to_string())?;
    ensure(formatted == text, "printing to a formatter and to a string give the same text")?;
    let mut bytes = Vec::with_capacity(text.len());
    write_module(&module, &options, &mut bytes).map_err(|e| e.to_string())?;
    ensure(bytes == text.as_bytes(), "printing to a file gives the same text")?;
    let mut functions = String::with_capacity(text.len());
    for &key in module.order() {
        print_function(&module, key, &options, &mut functions).map_err(|e| e.to_string())?;
    }
    ensure(!functions.is_empty(), "functions are printed")?;
    let parts = ModuleText::new(&module, &options);
    ensure(parts.text() == text, "the text in parts is the same")?;
    ensure(parts.functions().all(|(_, f)| f.ends_with("}\n") || f.ends_with(";\n")), "each function is whole")
}

fn parse(text: String) -> Done {
    parsed(text).map(drop)
}

fn parsed(text: String) -> Result<Module, String> {
    parse_module(Source::new("stress.anf", text), anfora_ops::standard()).map_err(|errors| first(&errors))
}

/// Checks that the first half of a text has an error, deep inside, that can be shown.
fn parse_cut_off(mut text: String) -> Done {
    let mut end = text.len() / 2;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    let source = Source::new("stress.anf", text);
    let Err(errors) = parse_module(source.clone(), anfora_ops::standard()) else {
        return Err("half of a program is accepted".to_string());
    };
    let shown = render_diagnostics(&errors, Some(&source), &RenderOptions::default());
    ensure(shown.contains("error"), "the error is shown")?;
    ensure(errors.iter().all(|e| !e.to_string().is_empty() && !format!("{e:?}").is_empty()), "errors can be printed")
}

fn round_trip(module: Module) -> Done {
    // Large programs of many functions are printed and read on two threads.
    let mut text = Vec::new();
    write_module_on(2, &module, &PrintOptions::default(), &mut text).map_err(|e| e.to_string())?;
    let text = String::from_utf8(text).map_err(|e| e.to_string())?;
    let source = Source::new("stress.anf", text.clone());
    let again = parse_module_on(2, source, anfora_ops::standard()).map_err(|errors| first(&errors))?;
    ensure(again.to_text() == text, "printing what was parsed gives the same text")?;
    ensure(alpha_equal(&module, &again), "what was parsed equals what was printed")?;
    if let Some(difference) = first_difference(&module, &again) {
        return Err(format!("{difference}"));
    }
    ensure(first_difference_with(&module, &again, AlphaOptions::default()).is_none(), "there is no difference")?;
    ensure(module_hash(&module) == module_hash(&again), "equal programs have equal hashes")
}

fn hash(module: Module) -> Done {
    ensure(module_hash(&module) == module_hash(&module.clone()), "a clone has the same hash")
}

fn alpha_hash(module: Module) -> Done {
    for (_, function) in module.functions() {
        let body = &function.body;
        let mut hasher = AlphaHasher::new();
        let hash = hasher.hash(&module.cx, body, body.root());
        hasher.forget(body.root());
        ensure(hasher.hash(&module.cx, body, body.root()) == hash, "an expression has one hash")?;
        ensure(alpha_equal_exprs(&module.cx, body, body.root(), body.root()), "an expression equals itself")?;
    }
    Ok(())
}

fn verify(module: Module) -> Done {
    let report = verify_module(&module).map_err(|errors| first(&errors))?;
    let mut forms = Vec::new();
    for &key in module.order() {
        forms.push(verify_function(&module, key).map_err(|errors| first(&errors))?);
    }
    ensure(forms.contains(&report.form()), "the form of a module is that of one of its functions")?;
    let form = verify_functions(&module, module.order()).map_err(|errors| first(&errors))?;
    ensure(form == report.form(), "also where they are verified together")
}

fn compact(mut module: Module) -> Done {
    let text = module.to_text();
    let keys = module.order().to_vec();
    for key in keys {
        let Some((function, _)) = module.get_mut(key) else { continue };
        let body = &mut function.body;
        let live = live_nodes(body, &Bump::new());
        let root = body.root();
        let params = body.params().to_vec();
        let remap = compact_body(body).map_err(|e| e.to_string())?;
        ensure(body.len() == live && !is_sparse(body, &Bump::new()), "what is left is what was alive")?;
        ensure(remap.expr(root) == Some(body.root()), "the root went where the remap says")?;
        let moved = params.iter().map(|&p| remap.var(p));
        ensure(moved.eq(body.params().iter().map(|&p| Some(p))), "parameters went where the remap says")?;
    }
    module.compact().map_err(|e| e.to_string())?;
    ensure(module.to_text() == text, "compaction changes no text")
}

fn count(module: Module) -> Done {
    let counts = Counts::of_module(&module);
    let mut bindings = 0;
    for (_, function) in module.functions() {
        bindings += Counts::of_body(&function.body).bindings;
        let tail = function.body.tail(function.body.root());
        ensure(!matches!(function.body.expr(tail), Expr::Let { .. }), "a chain has a tail")?;
    }
    ensure(counts.bindings == bindings, "a module has the bindings of its functions")
}

fn purity(module: Module) -> Done {
    let purity = Purity::of_module(&module);
    let prints = module.to_text().contains("print(");
    let main = module.cx.find_global("main").ok_or("there is no main")?;
    ensure(purity.global_is_pure(main) != prints, "what prints is impure, all else pure")?;
    for (_, function) in module.functions() {
        let body = &function.body;
        let of_body = BodyPurity::new(&module.cx, body, &purity);
        let mut lazy = LazyBodyPurity::new(&purity);
        for (id, expr) in body.exprs() {
            if let Expr::CallOp { attrs, .. } = expr {
                let pure = purity.attrs_are_pure(&module.cx, attrs);
                ensure(pure || of_body.is_impure_call(id), "a call with an impure function is impure")?;
            }
            ensure(prints || !of_body.is_impure(id), "where nothing prints, nothing is impure")?;
            let asked = lazy.is_impure(&module.cx, body, id);
            ensure(!asked || of_body.is_impure(id), "what is impure is so whenever it is found out")?;
        }
    }
    Ok(())
}

fn cursor(module: Module) -> Done {
    for (_, function) in module.functions() {
        let body = &function.body;
        let mut cursor = Cursor::new(body);
        let (mut steps, mut open, mut deepest) = (0usize, 0usize, 0);
        while let Some(step) = cursor.next(body) {
            steps += 1;
            match step {
                Step::EnterBlock(..) | Step::Enter(_) => open += 1,
                Step::ExitBlock(..) | Step::Exit(_) => open -= 1,
                Step::Flat(id) => {
                    open += 1;
                    cursor.enter(id);
                }
                _ => {}
            }
            deepest = deepest.max(open);
        }
        ensure(steps > 0 && open == 0, "what is entered is left")?;
        let again = Cursor::at(body, body.root()).next(body);
        ensure(again.is_some(), "a walk from the root comes to something")?;
        let mut whole = Cursor::with_regions(body);
        let mut from_root = Cursor::with_regions_at(body, body.root());
        let (mut entered, mut left) = (0usize, 0usize);
        while let Some(step) = whole.next(body) {
            ensure(from_root.next(body) == Some(step), "a walk from the root is the whole walk")?;
            entered += usize::from(matches!(step, Step::EnterRegion(_)));
            left += usize::from(matches!(step, Step::ExitRegion(_)));
        }
        ensure(entered == left, "regions that are entered are left")?;
    }
    Ok(())
}

fn infer(mut module: Module) -> Done {
    let errors = infer_module(&mut module);
    ensure(errors.is_empty(), "a program that has types has types")?;
    let keys = module.order().to_vec();
    for key in keys {
        let Some((function, cx)) = module.get_mut(key) else { continue };
        let ids: Vec<_> = function.body.exprs().map(|(id, _)| id).collect();
        let mut editor = Editor::new(cx, &mut function.body);
        for id in ids {
            let expr = editor.body.expr(id);
            if expr.is_atom() || matches!(expr, Expr::Let { .. }) {
                continue;
            }
            let ty = infer_expr(editor.cx, editor.body, id).map_err(|e| e.to_string())?;
            let stored = editor.body.ty(id);
            ensure(editor.cx.types.accepts(stored, ty), "a type that is inferred again is the one that was stored")?;
            editor.refresh_type(id).map_err(|e| e.to_string())?;
        }
    }
    Ok(())
}

/// Gives a new first parameter to those of the first functions that are only called, and removes it
/// again.
fn signatures(mut module: Module) -> Done {
    let before = module.to_text();
    let ty = module.cx.types.scalar(DType::Int32);
    let called: Vec<FunctionKey> =
        module.order().iter().copied().take(8).filter(|&key| calls_of(&module, &[key]).is_ok()).collect();
    let params = |module: &Module, key| module.get(key).map_or(0, |f| f.body.params().len());
    let with_one = called.iter().map(|&key| {
        let one = NewParameter::constant("one", ty, Literal::scalar(1i32));
        (key, SignatureChange::new().append(one).keep_all(0..params(&module, key)))
    });
    let with_one: Vec<(FunctionKey, SignatureChange<'_>)> = with_one.collect();
    change_signatures(&mut module, with_one).map_err(|e| e.to_string())?;
    let without = called.iter().map(|&key| (key, SignatureChange::new().keep_all(1..params(&module, key))));
    let without: Vec<(FunctionKey, SignatureChange<'_>)> = without.collect();
    change_signatures(&mut module, without).map_err(|e| e.to_string())?;
    if let Some(&key) = called.first() {
        let same = SignatureChange::new().keep_all(0..params(&module, key));
        change_signature(&mut module, key, same).map_err(|e| e.to_string())?;
    }
    let all = module.order().to_vec();
    update_signatures(&mut module, &all).map_err(|e| e.to_string())?;
    update_signatures_with(&mut module, &all, |_, _, _| {}).map_err(|e| e.to_string())?;
    ensure(module.to_text() == before, "a parameter that was added and taken away leaves nothing")?;
    for key in all {
        let Some((function, cx)) = module.get_mut(key) else { continue };
        let body = &function.body;
        let ret = function.ret.unwrap_or_else(|| body.type_of(body.root()));
        let known = function.global().and_then(|global| cx.globals.get(global).signature);
        ensure(known == Some(function.signature(cx, ret)), "the name of a function has its signature")?;
        let same = |(id, expr)| match expr {
            Expr::Let { var, .. } => body.binding_name(cx, id) == body.binding_name(cx, var.expr()),
            _ => true,
        };
        ensure(body.exprs().all(same), "a Let has the name of its variable")?;
    }
    Ok(())
}

fn retype(mut module: Module) -> Done {
    let keys = module.order().to_vec();
    for key in keys {
        let Some((function, cx)) = module.get_mut(key) else { continue };
        let body = &mut function.body;
        let Some(&param) = body.params().first() else { continue };
        let root = body.root();
        retype_from(cx, body, param.expr(), root).map_err(|e| e.to_string())?;
        let mut all = Retype::new(body);
        let ids: Vec<_> = body.exprs().map(|(id, _)| id).collect();
        for id in ids {
            all.changed(id);
        }
        all.sweep(cx, body, root).map_err(|e| e.to_string())?;
    }
    Ok(())
}

/// Takes each region out and puts it back as it was: its root is written again, so that it counts
/// as edited.
fn change_regions(mut module: Module) -> Done {
    let keys = module.order().to_vec();
    for key in keys {
        let Some((function, cx)) = module.get_mut(key) else { continue };
        let edited = edit_regions(cx, function, |_, region, _| {
            let root = region.body.root();
            let tail = region.body.tail(root);
            region.body.set_root(tail);
            region.body.set_root(root);
            Ok::<(), Diagnostics>(())
        });
        edited.map_err(|e| e.to_string())?;
    }
    Ok(())
}

/// Returns the types of the parameters and results of the functions of a module.
fn signature_types(module: &Module) -> Vec<TypeId> {
    let bodies = module.functions().map(|(_, f)| &f.body);
    bodies.flat_map(|b| b.params().iter().map(|p| b.ty(p.expr())).chain([b.type_of(b.root())])).collect()
}

fn types(mut module: Module) -> Done {
    let all = signature_types(&module);
    let Context { types, .. } = &mut module.cx;
    for &ty in &all {
        ensure(types.accepts(ty, ty), "a type accepts itself")?;
        ensure(types.join(ty, ty) == Some(ty), "the common type of a type and itself is the type")?;
        ensure(types.substitute(ty, |_| None) == ty, "substituting nothing changes nothing")?;
        let pair = types.tuple(&[ty, ty]);
        let mut done = SubstitutedParts::default();
        for part in [ty, pair] {
            ensure(types.substitute_in(part, &mut done, |_| None) == part, "nor does it part by part")?;
        }
        let other = types.unit();
        let longer = types.tuple(&[pair, other]);
        ensure(!types.accepts(pair, longer), "a pair is no pair of a pair")?;
        let mut symbols = 0;
        types.for_each_symbol(pair, |_| symbols += 1);
        let mut seen = SeenParts::default();
        types.for_each_new_symbol(pair, &mut seen, |_| symbols += 1);
        let mut again = 0;
        types.for_each_new_symbol(ty, &mut seen, |_| again += 1);
        ensure(again == 0, "a part that was seen is not looked at again")?;
        types.for_each_binding_symbol(pair, |_| symbols += 1);
        types.for_each_dim_beside(pair, pair, &mut Default::default(), |a, b| symbols += usize::from(a == b));
        ensure((symbols > 0) == types.is_symbolic(pair), "a type with symbols is symbolic")?;
        let _ = (types.static_shape(ty), types.static_bytes(ty));
        let (count, seven) = (types.scalar(DType::Int64), types.dims.constant(7));
        let seven = types.with_elements(count, &[seven]);
        let (known, unknown) = (types.tuple(&[ty, seven]), types.tuple(&[ty, count]));
        let (known, unknown) = (types.without_elements(known), types.without_elements(unknown));
        ensure(known == unknown, "types that differ in elements are the same without them")?;
        let function = types.function(&[ty, pair], ty, &[]);
        let (params, result) = types.instantiate(function, &[]).ok_or("a function type can be instantiated")?;
        ensure(params[..] == [ty, pair] && result == ty, "an instance without symbols is what the function type says")?;
    }
    // Messages show types down to a limited depth.
    ensure(all.iter().all(|&ty| !module.cx.type_text(ty).is_empty()), "a type can be shown")
}

fn symbols(mut module: Module) -> Done {
    let before = module.to_text();
    let name = module.cx.names.intern("n");
    let unused = module.cx.types.dims.new_symbol(name);
    let seven = module.cx.types.dims.constant(7);
    let mut substitution = SymbolSubstitution::new();
    substitution.set(unused, seven);
    let (mut walk, mut free) = (SymbolWalk::new(), FreeSymbols::new());
    for (_, function) in module.functions() {
        let (cx, body) = (&module.cx, &function.body);
        walk.in_attrs(cx, function.attrs, |_| ());
        for (id, _) in body.exprs() {
            walk.in_node(cx, body, id, |_| ());
            let mut again = 0;
            walk.in_type(cx, body.ty(id), |_| again += 1);
            ensure(again == 0, "a type that was met is not looked at again")?;
            let all = free.of(&cx.types, body.ty(id));
            ensure(all.is_empty() || cx.types.is_symbolic(body.ty(id)), "a type with free symbols is symbolic")?;
        }
    }
    for key in module.order().to_vec() {
        substitution.in_function(&mut module, key, &[]).map_err(|failed| failed.error.to_string())?;
    }
    ensure(module.to_text() == before, "a symbol that nothing names stands in nothing")?;
    let fresh = NameSupply::new(&module).fresh(&mut module.cx, "main");
    ensure(module.cx.global_name(fresh) != "main", "a name is given out once")
}

/// Makes a dimension that nests as deep as the program is large: a quotient of a product of a sum
/// of a quotient and so on.
fn dimensions(depth: usize) -> Done {
    let mut cx = Module::new(anfora_ops::standard()).cx;
    let name = cx.names.intern("n");
    let dims = &mut cx.types.dims;
    let symbol = dims.new_symbol(name);
    let (n, two) = (dims.symbol(symbol), dims.constant(2));
    let mut dim = n;
    for i in 0..depth {
        let more = if i % 2 == 0 { dims.add(dim, n) } else { dims.sub(dim, two) };
        let scaled = dims.mul(more, two);
        let op = if i % 2 == 0 { DimOp::FloorDiv } else { DimOp::Max };
        let three = dims.constant(3);
        dim = dims.op(op, scaled, three);
    }
    ensure(dims.is_symbolic(dim), "a dimension with a symbol is symbolic")?;
    let mut symbols = 0;
    dims.for_each_symbol(dim, |_| symbols += 1);
    ensure(symbols > 0, "the symbol is found")?;
    ensure(dims.substitute(dim, |_, _| None) == dim, "substituting nothing changes nothing")?;
    let constant = dims.substitute(dim, |dims, _| Some(dims.constant(5)));
    ensure(!dims.is_symbolic(constant), "without its symbol, a dimension has none")?;
    let _ = dims.as_constant(constant);
    ensure(!cx.dim_text(dim).is_empty(), "a dimension can be shown")
}

/// Makes an attribute that nests as deep as the program is large.
fn attributes(depth: usize) -> Done {
    let mut cx = Module::new(anfora_ops::standard()).cx;
    let text = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    let attr = parse_attr(&mut cx, &text).map_err(|errors| first(&errors))?;
    let again = parse_attr(&mut cx, &text).map_err(|errors| first(&errors))?;
    ensure(attr == again, "equal attributes are one")?;
    let list = cx.named_attrs(&[("deep", attr)]);
    ensure(cx.find_attr(list, "deep") == Some(attr), "an attribute is found by its name")?;
    let same = cx.with_attr(list, "deep", Some(again));
    ensure(same == list, "setting what is set changes nothing")
}

/// Makes a type that nests as deep as the program is large.
fn deep_types(depth: usize) -> Done {
    let mut cx = Module::new(anfora_ops::standard()).cx;
    let text = format!("{}int32{}", "(".repeat(depth), ",)".repeat(depth));
    let ty = parse_type(&mut cx, &text).map_err(|errors| first(&errors))?;
    let again = parse_type(&mut cx, &text).map_err(|errors| first(&errors))?;
    ensure(ty == again && cx.types.as_tuple(ty).is_some() == (depth > 0), "equal types are one")
}

fn rollback(mut module: Module) -> Done {
    let text = module.to_text();
    module.begin_edit();
    let keys = module.order().to_vec();
    for &key in &keys {
        let Some((function, cx)) = module.get_mut(key) else { continue };
        let body = &mut function.body;
        let ids: Vec<_> = body.exprs().map(|(id, _)| id).collect();
        let unit = cx.types.unit();
        body.begin_journal();
        for id in ids {
            body.set_expr(id, Expr::None);
            body.set_type(id, unit);
        }
        ensure(body.is_edited() && body.edit_size() > 0, "overwriting is noticed")?;
        body.rollback_journal();
        overwrite_and_put_back(body)?;
        body.begin_journal();
        let copy = body.clone();
        body.replace(copy);
        body.commit_journal();
    }
    ensure(module.has_changes() || keys.is_empty(), "a body that was replaced is a change")?;
    ensure(keys.iter().any(|&key| module.is_edited(key)), "it is known of which function")?;
    ensure(module.affected_functions().len() == keys.len(), "and that all of them are others")?;
    module.rollback();
    ensure(module.to_text() == text, "what is rolled back is as it was")?;
    module.begin_edit();
    ensure(!module.commit(), "an empty edit is none")
}

/// Overwrites the first operand of everything that has one, and puts it back. Checks that nodes
/// with several uses are noted in builds with debug assertions.
fn overwrite_and_put_back(body: &mut Body) -> Done {
    body.begin_journal();
    let root = body.root();
    let lists: Vec<OperandList> =
        body.exprs().filter_map(|(_, expr)| expr.operand_list()).filter(|list| !list.is_empty()).collect();
    for list in lists {
        let first = body.operand(list, 0);
        body.set_operand(list, 0, root);
        body.set_operand(list, 0, first);
    }
    let mut several: Vec<(ExprId, usize)> = body.take_edited_shared();
    several.sort_unstable_by_key(|(id, _)| id.index());
    let taken = body.take_edited_shared().is_empty();
    body.rollback_journal();
    let wanted = if cfg!(debug_assertions) { shared_lists(body) } else { Vec::new() };
    ensure(several == wanted, "the nodes with several uses are noted, and no others")?;
    ensure(taken, "and they are noted once")
}

/// Counts the links to each node. Returns the nodes that have operands and several links, each with
/// its number of links.
fn shared_lists(body: &Body) -> Vec<(ExprId, usize)> {
    let mut links = vec![0; body.len()];
    let mut left = vec![body.root()];
    while let Some(id) = left.pop() {
        links[id.index()] += 1;
        if links[id.index()] > 1 {
            continue;
        }
        left.extend(body.parts(id));
    }
    let shared = |id: &ExprId| links[id.index()] > 1 && !body.operands_of(*id).is_empty();
    body.exprs().map(|(id, _)| id).filter(shared).map(|id| (id, links[id.index()])).collect()
}

fn diagnostics(module: Module) -> Done {
    let text = module.to_text();
    // The diagnostic is about the last binding of main, wherever it is.
    let name = text.rsplit("let %").next().and_then(|rest| rest.split([' ', ':']).next()).unwrap_or_default();
    let diagnostic = Diagnostic::new(Severity::Warning, "look here").in_function("main").on_binding(name);
    let shown = render_module_diagnostics(std::slice::from_ref(&diagnostic), &module, &RenderOptions::default());
    ensure(shown.contains("look here"), "the message is shown")?;
    let json = diagnostics_json(&[diagnostic], None);
    ensure(json.contains("look here"), "the message is in the JSON")?;
    let start = text.find('{').unwrap_or(0);
    ensure(expr_extent(&text, start).end <= text.len(), "an expression ends in its text")
}
