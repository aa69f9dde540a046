//! Tests of edits of chains, and of lists of bindings.

use anfora_ir::{Editor, ExprId, VarFlags};
use anfora_visit::{Binding, LetList, Link, chain, insert_before, splice_before, tail_link, unlink_let};
use expect_test::{Expect, expect};

use crate::programs::{edited, float};

const REGION: &str = "def @main(%x: float32) {
    dataflow {
        let %a = negative(%x);
        let %b = negative(%x);
        output(%b)
    }
    let %c = negative(%x);
    %b
}";

fn check(text: &str, edit: impl FnOnce(&mut Editor<'_>), expected: Expect) {
    expected.assert_eq(&edited(text, edit));
}

fn nth(editor: &Editor<'_>, n: usize) -> ExprId {
    chain(editor.body, editor.body.root()).nth(n).unwrap().id
}

#[test]
fn unlinking_the_first_of_a_region_moves_its_start() {
    check(
        REGION,
        |editor| {
            let next = unlink_let(editor.body, Link::Root);
            assert_eq!(next, editor.body.root());
        },
        expect![[r#"
            def @main(%x: float32) -> float32 {
              dataflow {
                let %b = negative(%x);
                output(%b);
              }
              let %c = negative(%x);
              %b
            }
        "#]],
    );
    check(
        REGION,
        |editor| {
            let second = nth(editor, 1);
            unlink_let(editor.body, Link::Rest(second));
        },
        expect![[r#"
            def @main(%x: float32) -> float32 {
              dataflow {
                let %a = negative(%x);
                let %b = negative(%x);
                output(%b);
              }
              %b
            }
        "#]],
    );
}

#[test]
fn bindings_are_inserted_into_the_region_that_is_there() {
    let value = |editor: &mut Editor<'_>, name: &str| {
        let name = editor.cx.names.intern(name);
        let x = editor.body.params()[0].expr();
        let ty = editor.body.ty(x);
        let value = editor.call_named("add", &[x, x]).unwrap();
        (editor.var(Some(name), VarFlags::DATAFLOW, ty), value)
    };
    check(
        REGION,
        |editor| {
            let (one, two) = (value(editor, "one"), value(editor, "two"));
            let first = editor.body.root();
            let link = insert_before(editor, Link::Root, &[one, two]);
            assert_eq!(link.target(editor.body), first);
        },
        expect![[r#"
            def @main(%x: float32) -> float32 {
              dataflow {
                let %one = add(%x, %x);
                let %two = add(%x, %x);
                let %a = negative(%x);
                let %b = negative(%x);
                output(%b);
              }
              let %c = negative(%x);
              %b
            }
        "#]],
    );
    check(
        REGION,
        |editor| {
            let one = value(editor, "one");
            let link = tail_link(editor.body, Link::Root);
            insert_before(editor, link, &[one]);
        },
        expect![[r#"
            def @main(%x: float32) -> float32 {
              dataflow {
                let %a = negative(%x);
                let %b = negative(%x);
                output(%b);
              }
              let %c = negative(%x);
              let %one = add(%x, %x);
              %b
            }
        "#]],
    );
}

#[test]
fn a_block_is_spliced_in_front() {
    check(
        "def @main(%x: float32) {
            let %a = { dataflow { let %i = negative(%x); let %j = negative(%i); output(%j) } %j };
            %a
        }",
        |editor| {
            let id = editor.body.root();
            let block = Binding::of(editor.body, id).unwrap().value;
            let (tail, link) = splice_before(editor.body, Link::Root, block);
            assert_eq!(link.target(editor.body), id);
            Link::Value(id).set(editor.body, tail);
        },
        expect![[r#"
            def @main(%x: float32) -> float32 {
              dataflow {
                let %i = negative(%x);
                let %j = negative(%i);
                output(%j);
              }
              let %a = %j;
              %a
            }
        "#]],
    );
    check(
        "def @main(%x: float32) {
            dataflow { let %a = { let %i = negative(%x); let %j = negative(%i); %j }; output(%a) }
            %a
        }",
        |editor| {
            let id = editor.body.root();
            let block = Binding::of(editor.body, id).unwrap().value;
            let (tail, _) = splice_before(editor.body, Link::Root, block);
            Link::Value(id).set(editor.body, tail);
        },
        expect![[r#"
            def @main(%x: float32) -> float32 {
              dataflow {
                let %i = negative(%x);
                let %j = negative(%i);
                let %a = %j;
                output(%a);
              }
              %a
            }
        "#]],
    );
}

#[test]
fn a_list_of_bindings_becomes_a_block() {
    check(
        "def @main(%x: float32) { let %v = { let %i = negative(%x); negative(%i) }; %v }",
        |editor| {
            let root = editor.body.root();
            let x = editor.body.params()[0].expr();
            let mut list = LetList::new();
            assert!(list.is_empty() && list.tail_link().is_none());
            let name = Some(editor.cx.names.intern("n"));
            let two = float(editor, 2.0);
            let sum = editor.call_named("add", &[x, two]).unwrap();
            let a = list.bind(editor, name, sum);
            list.begin_region();
            let b = editor.call_named("negative", &[a]).unwrap();
            let b = list.bind(editor, name, b);
            let block = Binding::of(editor.body, root).unwrap().value;
            let tail = list.splice(editor, block).unwrap();
            let c = list.bind(editor, name, tail);
            let c = editor.body.as_var(c).unwrap();
            list.end_region(editor.body, &[c]);
            let d = editor.call_named("add", &[b, c.expr()]).unwrap();
            let d = editor.call_named("negative", &[c.expr()]).unwrap_or(d);
            let d = list.bind(editor, name, d);
            assert_eq!(list.len(), 5);
            let block = list.finish(editor, d);
            editor.body.set_root(block);
        },
        expect![[r#"
            def @main(%x: float32) -> float32 {
              let %n = add(%x, 2f);
              dataflow {
                let %n$1 = negative(%n);
                let %i = negative(%x);
                let %n$2 = negative(%i);
                output(%n$2);
              }
              let %n$3 = negative(%n$2);
              %n$3
            }
        "#]],
    );
    check(
        "def @main(%x: float32) { %x }",
        |editor| {
            let x = editor.body.params()[0].expr();
            assert_eq!(LetList::new().finish(editor, x), x);
        },
        expect![[r#"
            unchanged
        "#]],
    );
}

#[test]
fn lets_can_be_moved_into_a_list() {
    check(
        REGION,
        |editor| {
            let lets: Vec<_> = chain(editor.body, editor.body.root()).collect();
            let mut list = LetList::new();
            for b in lets.iter().rev() {
                list.push_let(editor.body, b.id);
            }
            let tail = lets[1].var.expr();
            let block = list.finish(editor, tail);
            editor.body.set_root(block);
        },
        expect![[r#"
            def @main(%x: float32) -> float32 {
              let %c = negative(%x);
              let %b = negative(%x);
              let %a = negative(%x);
              %b
            }
        "#]],
    );
}
