//! Tests of dataflow regions in walks and edits, and of the children of nodes.

use std::convert::Infallible;
use std::fmt::Write;
use std::ops::ControlFlow;

use anfora_ir::{
    BlockKind, Body, Context, Cursor, Editor, Expr, ExprId, LetFlags, Module, PerBlock, RegionWriter, Step, VarFlags,
};
use anfora_visit::{Binding, Link, Visit, Visitor, chain, for_each_expr, hide_unused_outputs, walk};
use expect_test::expect;
use proptest::prelude::*;

use crate::programs::{SHAPES, body, deep, edited, parse, random, var};

/// Two adjacent regions; in the second, a block with a region of its own.
const NESTED: &str = "def @main(%x: float32) {
    dataflow {
        let %a = negative(%x);
        let %b = negative(%a);
        output(%b)
    }
    dataflow {
        let %d = fn(%p: float32) -> float32 {
            let %i = negative(%p);
            dataflow {
                let %j = negative(%i);
                output(%j)
            }
            %j
        };
        let %e = %d(%b);
        output(%e)
    }
    let %f = negative(%e);
    %f
}";

fn name(cx: &Context, body: &Body, id: ExprId) -> String {
    body.binding_name(cx, id).unwrap_or("?").to_string()
}

/// Returns the Lets in the order of a walk, with the beginnings and ends of regions. Calls `edit`
/// at each step.
fn trace(editor: &mut Editor<'_>, mut edit: impl FnMut(&mut Editor<'_>, &mut Cursor<ExprId>, Step<ExprId>)) -> String {
    let mut trace = String::new();
    let mut cursor = Cursor::with_regions(editor.body);
    while let Some(step) = cursor.next(editor.body) {
        let (word, id) = match step {
            Step::EnterRegion(id) => ("(", id),
            Step::Let(id) => ("", id),
            Step::ExitRegion(id) => (")", id),
            Step::EnterBlock(_, BlockKind::Lambda(_)) => {
                trace.push_str("{ ");
                continue;
            }
            Step::ExitBlock(_, BlockKind::Lambda(_)) => {
                trace.push_str("} ");
                continue;
            }
            _ => continue,
        };
        let _ = write!(trace, "{word}{} ", name(editor.cx, editor.body, id));
        edit(editor, &mut cursor, step);
    }
    trace.trim_end().to_string()
}

fn traced(edit: impl FnMut(&mut Editor<'_>, &mut Cursor<ExprId>, Step<ExprId>)) -> String {
    let mut found = String::new();
    edited(NESTED, |editor| found = trace(editor, edit));
    found
}

#[test]
fn regions_are_those_of_their_own_chain() {
    assert_eq!(traced(|_, _, _| {}), "(a a b )b (d d { i (j j )j } e )e f");
}

#[test]
fn skipping_after_the_beginning_of_a_region_leaves_out_nothing() {
    let skip = |_: &mut Editor<'_>, cursor: &mut Cursor<ExprId>, step| {
        if let Step::EnterRegion(_) = step {
            cursor.skip();
        }
    };
    assert_eq!(traced(skip), "(a a b )b (d d { i (j j )j } e )e f");
}

#[test]
fn a_region_of_the_walk_stays_what_it_was_when_flags_are_overwritten() {
    let dissolve = |editor: &mut Editor<'_>, _: &mut Cursor<ExprId>, step| {
        if let Step::Let(id) = step {
            RegionWriter::default().write(editor.body, id);
        }
    };
    assert_eq!(traced(dissolve), "(a a b )b (d d { i (j j )j } e )e f");
}

#[test]
fn what_is_put_in_after_the_last_let_is_walked() {
    let insert = |editor: &mut Editor<'_>, step, at: fn(ExprId) -> Step<ExprId>| {
        let b = chain(editor.body, editor.body.root()).find(|b| name(editor.cx, editor.body, b.id) == "b");
        let b = b.expect("it is in the chain").id;
        if step == at(b) {
            let x = var(editor, "x");
            let value = editor.op("negative", &[x.expr()], &[]).unwrap();
            let (new, ty) = (editor.cx.names.intern("new"), editor.body.ty(value));
            let new = editor.var(Some(new), VarFlags::DATAFLOW, ty);
            let rest = Link::Rest(b).target(editor.body);
            let id = editor.let_(new, value, rest, LetFlags::DATAFLOW);
            Link::Rest(b).set(editor.body, id);
        }
    };
    // At its Let, the new Let continues the region, and the region ends after it.
    assert_eq!(traced(|e, _, s| insert(e, s, Step::Let)), "(a a b new )new (d d { i (j j )j } e )e f");
    // After the end, its flags begin another region for the walk.
    assert_eq!(traced(|e, _, s| insert(e, s, Step::ExitRegion)), "(a a b )b (new new )new (d d { i (j j )j } e )e f");
}

/// Returns a step of a plain walk; `None` for a step of regions.
fn plain(step: Step<ExprId>) -> Option<Step> {
    Some(match step {
        Step::EnterBlock(id, kind) => Step::EnterBlock(id, kind),
        Step::Let(id) => Step::Let(id),
        Step::Bound(id) => Step::Bound(id),
        Step::Atom(id) => Step::Atom(id),
        Step::Flat(id) => Step::Flat(id),
        Step::Enter(id) => Step::Enter(id),
        Step::Exit(id) => Step::Exit(id),
        Step::Seen(id) => Step::Seen(id),
        Step::ExitBlock(id, kind) => Step::ExitBlock(id, kind),
        Step::EnterRegion(_) | Step::ExitRegion(_) => return None,
    })
}

/// Checks that the walk with regions is the plain walk with further steps, and that each Let of a
/// region is inside of a region.
fn check_regions(body: &Body) {
    let (mut with, mut without) = (Cursor::with_regions(body), Cursor::new(body));
    let mut open: PerBlock<Option<ExprId>> = PerBlock::default();
    let mut last = None;
    while let Some(step) = with.next(body) {
        match step {
            Step::EnterBlock(..) => open.enter(),
            Step::ExitBlock(..) => assert_eq!(open.exit(), None, "a region ends before its block"),
            Step::EnterRegion(first) => assert_eq!(open.replace(first), None, "a region ends before the next"),
            Step::ExitRegion(id) => {
                assert!(open.take().is_some(), "a region begins before it ends");
                assert_eq!(last, Some(id), "it ends after its last Let");
            }
            Step::Let(id) => {
                let flags = Binding::of(body, id).unwrap().flags;
                assert_eq!(open.is_some(), flags.is_dataflow());
                assert_eq!(*open == Some(id), flags.starts_region());
            }
            Step::Bound(id) => last = Some(id),
            _ => {}
        }
        if let Some(step) = plain(step) {
            assert_eq!(without.next(body), Some(step));
        }
    }
    assert_eq!(without.next(body), None);
}

/// Returns the expressions at the links of a node.
fn children(body: &Body, id: ExprId) -> Vec<ExprId> {
    match body.expr(id) {
        Expr::Let { value, body: rest, .. } => vec![value, rest],
        Expr::If { cond, then_block, else_block } => vec![cond, then_block, else_block],
        Expr::Lambda { body: block, .. } => vec![block],
        Expr::Proj { tuple, .. } => vec![tuple],
        _ => body.operands_of(id).to_vec(),
    }
}

/// Checks that the children of nodes are the expressions at their links, in order.
fn check_parts(body: &Body) {
    for_each_expr(body, body.root(), |id| {
        let expected = children(body, id);
        assert_eq!(body.parts(id).collect::<Vec<_>>(), expected);
        assert_eq!(body.parts(id).len(), expected.len());
        assert!(body.parts(id).rev().eq(expected.iter().rev().copied()));
        assert_eq!(body.parts(id).fold(0, |n, _| n + 1), expected.len());
        for n in 0..=expected.len() {
            let mut parts = body.parts(id);
            assert_eq!(parts.nth(n), expected.get(n).copied());
            assert!(parts.eq(expected.iter().skip(n + 1).copied()));
        }
        let inputs = body.inputs(id);
        assert_eq!(inputs, &expected[..inputs.len()]);
        let is_flat = !body.expr(id).binds() && expected.iter().all(|&part| body.expr(part).is_atom());
        assert_eq!(body.is_flat(id), is_flat);
    });
}

fn check_all(module: &Module) {
    check_regions(body(module));
    check_parts(body(module));
}

#[test]
fn regions_and_children_of_programs_of_every_shape() {
    check_all(&parse(NESTED));
    for shape in SHAPES {
        check_all(&deep(shape, 5));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn regions_and_children_of_random_programs(random in random()) {
        check_all(&random.module());
    }
}

/// A block that a visitor is in, and the first Let of the current region in it.
#[derive(Copy, Clone)]
struct Here {
    block: &'static str,
    region: Option<ExprId>,
}

impl Default for Here {
    fn default() -> Here {
        Here { block: "none", region: None }
    }
}

/// Records the place of each bound variable, block and region.
struct Places<'c> {
    cx: &'c Context,
    here: PerBlock<Here>,
    skip: bool,
    trace: String,
}

impl Places<'_> {
    fn note(&mut self, body: &Body, word: &str) {
        let region = self.here.region.map_or("-".to_string(), |first| name(self.cx, body, first));
        let _ = writeln!(self.trace, "{word}: {} {region} {}", self.here.block, self.here.depth());
    }
}

impl Visitor for Places<'_> {
    type Break = Infallible;
    fn visit_def(&mut self, body: &Body, var: anfora_ir::VarId) -> Visit<Infallible> {
        let word = name(self.cx, body, var.expr());
        self.note(body, &word);
        Visit::Continue
    }
    fn enter_block(&mut self, _: &Body, _: ExprId) -> Visit<Infallible> {
        self.here.enter_with(Here { block: "root", region: None });
        Visit::Continue
    }
    fn exit_block(&mut self, _: &Body, _: ExprId) -> ControlFlow<Infallible> {
        self.here.exit();
        ControlFlow::Continue(())
    }
    fn enter_lambda(&mut self, body: &Body, _: ExprId) -> Visit<Infallible> {
        self.here.enter_with(Here { block: "fn", region: None });
        self.note(body, "enter fn");
        if self.skip {
            self.here.exit();
            return Visit::Skip;
        }
        Visit::Continue
    }
    fn exit_lambda(&mut self, body: &Body, _: ExprId) -> ControlFlow<Infallible> {
        self.note(body, "exit fn");
        self.here.exit();
        ControlFlow::Continue(())
    }
    fn enter_region(&mut self, body: &Body, first: ExprId) -> Visit<Infallible> {
        self.here.region = Some(first);
        self.note(body, "enter region");
        Visit::Continue
    }
    fn exit_region(&mut self, body: &Body, _: ExprId) -> ControlFlow<Infallible> {
        self.note(body, "exit region");
        self.here.region = None;
        ControlFlow::Continue(())
    }
}

fn places(skip: bool) -> String {
    let module = parse(NESTED);
    let mut places = Places { cx: &module.cx, here: PerBlock::default(), skip, trace: String::new() };
    let _ = walk(body(&module), &mut places);
    assert_eq!(places.here.depth(), 0, "all blocks are left");
    places.trace
}

#[test]
fn a_visitor_knows_its_place() {
    expect![[r#"
        x: none - 0
        enter region: root a 1
        a: root a 1
        b: root a 1
        exit region: root a 1
        enter region: root d 1
        enter fn: fn - 2
        p: fn - 2
        i: fn - 2
        enter region: fn j 2
        j: fn j 2
        exit region: fn j 2
        exit fn: fn - 2
        d: root d 1
        e: root d 1
        exit region: root d 1
        f: root - 1
    "#]]
    .assert_eq(&places(false));
}

#[test]
fn a_block_that_is_skipped_is_left() {
    expect![[r#"
        x: none - 0
        enter region: root a 1
        a: root a 1
        b: root a 1
        exit region: root a 1
        enter region: root d 1
        enter fn: fn - 2
        d: root d 1
        e: root d 1
        exit region: root d 1
        f: root - 1
    "#]]
    .assert_eq(&places(true));
}

fn hidden(text: &str, is_chosen: impl Fn(&str) -> bool) -> String {
    edited(text, |editor| {
        let lets: Vec<(ExprId, String)> = {
            let (cx, body) = (&editor.cx, &editor.body);
            chain(body, body.root()).map(|b| (b.id, name(cx, body, b.id))).collect()
        };
        let is_chosen = |id: ExprId| lets.iter().any(|(first, name)| *first == id && is_chosen(name));
        hide_unused_outputs(editor.body, is_chosen);
    })
}

#[test]
fn outputs_that_only_their_region_uses_are_hidden() {
    let text = "def @main(%x: float32) {
        dataflow {
            let %a = negative(%x);
            let %b = negative(%a);
            let %later = negative(%b);
            let %inner = negative(%b);
            let %f = fn(%p: float32) -> float32 { add(%p, %inner) };
            let %d = %f(%b);
            output(%a, %b, %later, %inner, %f, %d)
        }
        dataflow {
            let %e = negative(%later);
            let %g = negative(%e);
            output(%e, %g)
        }
        add(%d, %g)
    }";
    expect![[r#"
        def @main(%x: float32) -> float32 {
          dataflow {
            let %a = negative(%x);
            let %b = negative(%a);
            let %later = negative(%b);
            let %inner = negative(%b);
            let %f = fn (%p: float32) -> float32 { add(%p, %inner) };
            let %d = %f(%b);
            output(%later, %inner, %d);
          }
          dataflow {
            let %e = negative(%later);
            let %g = negative(%e);
            output(%e, %g);
          }
          add(%d, %g)
        }
    "#]]
    .assert_eq(&hidden(text, |first| first == "a"));
    assert_eq!(hidden(text, |_| false), "unchanged\n");
}

#[test]
fn a_writer_keeps_regions_whole() {
    let (start, inside, plain) = (LetFlags::REGION_START, LetFlags::DATAFLOW, LetFlags::PLAIN);
    // `true` for a Let that stays, `false` for a removed one.
    let written = |chain: &[(LetFlags, bool)]| -> Vec<LetFlags> {
        let mut writer = RegionWriter::default();
        let mut written = Vec::new();
        for &(flags, stays) in chain {
            writer.follow(flags);
            written.extend(stays.then(|| writer.next_flags()));
        }
        written
    };
    assert_eq!(written(&[(start, true), (inside, true), (plain, true)]), [start, inside, plain]);
    assert_eq!(written(&[(start, false), (inside, true), (inside, true)]), [start, inside]);
    assert_eq!(written(&[(start, true), (inside, false), (start, false), (inside, true)]), [start, start]);
    assert_eq!(written(&[(start, false), (plain, true), (start, true)]), [plain, start]);
    for (flags, before, after) in [(start, start, inside), (inside, inside, inside), (plain, plain, plain)] {
        assert_eq!(RegionWriter::before(flags).next_flags(), before);
        assert_eq!(RegionWriter::after(flags).next_flags(), after);
    }
}

#[test]
fn a_variable_outside_of_regions_becomes_plain() {
    edited(NESTED, |editor| {
        let first = editor.body.root();
        let a = Binding::of(editor.body, first).unwrap().var;
        assert!(editor.body.is_dataflow_var(a));
        RegionWriter::take_out(editor.body, LetFlags::REGION_START, Link::Rest(first).target(editor.body));
        RegionWriter::default().write(editor.body, first);
        assert!(!editor.body.is_dataflow_var(a));
    });
}
