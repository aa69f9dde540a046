//! Every kind of error: its place, its words, and that reading goes on behind it.

use expect_test::expect;

use crate::{errors, fails, fails_in, parse};

#[test]
fn unknown_names_have_suggestions() {
    fails_in(
        "let %value = ad(%x, %y);
         let %other = subtract(%valeu, %zzzzzzz);
         let %n = note(%x, axes=1);
         let %m = note(%x, axis=\"a\");
         let %o = match_cast(%x);
         let %p = @mian(%x);
         let %q = @f;
         let %r: Tensr[(8,), float32] = %x;
         let %s = op \"odd nam!\"(%x);
         let %t = note(%x, value=[flaot32, !alas]);
         nonsense.op(%value)",
        &expect![[]],
    );
}

#[test]
fn duplicates_show_the_first() {
    fails(
        "type !t = int8;
         attr !t = 1;
         def @f(%x: int8, %y: int8, %x: int8, K=1, K=2) { note(%x, value=1, value=2) }
         declare @f() -> ();
         def @f() { () }",
        &expect![[]],
    );
}

#[test]
fn locals_are_visible_where_they_are_bound() {
    fails_in(
        "let %a = if (%c) { let %b = exp(%x); %b } else { %b };
         dataflow { let %d = exp(%x); let %e = exp(%d); output(%e); }
         let %g = exp(%d);
         let %h = add(%h, %later);
         let %later = %x;
         let %k = note(%x, value=fn(%z: int8) { add(%z, %x) });
         (%b, %e)",
        &expect![[]],
    );
}

#[test]
fn regions_say_what_they_lack() {
    fails_in(
        "dataflow { let %a = exp(%x); }
         dataflow { let %a = exp(%x); dataflow { output() } output(%a) }
         dataflow { let %b = exp(%x); %g = exp(%b); output(%x, %b, %b, %g) }
         dataflow { let %d = exp(%x); exp(%d) }
         %x",
        &expect![[]],
    );
}

#[test]
fn graph_nodes_with_blocks_are_used_once() {
    fails_in(
        "%g = if (%c) { %x } else { %y };
         %h = fn(%a: int8) { %a };
         add(%g, note(%g, %h, %h))",
        &expect![[]],
    );
}

#[test]
fn numbers_out_of_range() {
    fails_in(
        "(128i8, -129i8, 2147483648, -1u8, 256u8, 9999999999999999999999999999999999999999, 1e39f, 65520f16, 1.5, inf, 1q7, 0x10, 1.5i8,
          dense<Tensor[(2,), int8]>[1, 128], dense<Tensor[(2,), float32]>[1, 1f], dense<Tensor[(2,), float32]>[nan(0x1), 1])",
        &expect![[]],
    );
}

#[test]
fn constants_that_do_not_fit_their_type() {
    fails_in(
        "(dense<Tensor[(2, 2), float32]>[1, 2, 3], dense<Tensor[(n,), float32]>[1], dense<(int8, int8)>[1],
          dense<Tensor[(2,), float32]>\"0x00\", dense<Tensor[(2,), float32]>\"zz\", dense<Tensor[(9999999999, 9999999999), int8]>[1, 2],
          dense<Tensor[(2,), string]>[\"a\"])",
        &expect![[]],
    );
    fails_in("dense<Tensor[(2,), complex64]>[1, 2]", &expect![[]]);
    fails_in("dense<Tensor[(2,), float32]>[elided 4096]", &expect![[]]);
    fails_in("dense<Tensor[(2,), bool]>[true, 2]", &expect![[]]);
    fails_in("dense<Tensor[(2,), int8]>[1, inf]", &expect![[]]);
    fails_in("dense<Tensor[(2,), int8]>{1}", &expect![[]]);
}

#[test]
fn characters_strings_and_comments() {
    fails_in("let %a = §x; let %b = exp(%\"y); \n %b", &expect![[]]);
    fails_in("let %\"a\\q\" = %x; note(%x, value=\"\\u{110000}\")", &expect![[]]);
    fails_in("let % = %x; @", &expect![[]]);
    fails("def @f() { () } /* /* */", &expect![[]]);
}

#[test]
fn syntax_errors_and_where_reading_goes_on() {
    fails_in(
        "let %a = add(%x %y);
         let %b = exp(%a;
         let %c2 = exp(%x)
         let %d = exp(%b);
         let x = 1;
         let %e: = 1;
         let %g : int8 1;
         let %h = if %c { 1 } else { 2 };
         let %i = if (%c) { 1 };
         let %j = if (%c) { let %z = 1; } else if (%c) { 2 };
         let %k = fn(%x) { 1 };
         let %l = fn(%x: int8) 1;
         let %m = %x.y;
         let %n = %x.99999999999;
         let %o = note(axis=1, %x);
         let %p = note(%x, axis 1);
         let %q = (1, 2;
         let %r = add(%d, %nope);
         exp(%e)",
        &expect![[]],
    );
}

#[test]
fn blocks_end_with_an_expression() {
    fails_in("let %a = exp(%x);", &expect![[]]);
    fails_in("exp(%x);", &expect![[]]);
    fails_in("exp(%x) exp(%y)", &expect![[]]);
    fails_in("#[a=1] exp(%x)", &expect![[]]);
    fails_in("let %a = let %b = 1; %a", &expect![[]]);
    fails("def @f() {\n  let %a = 1;\n", &expect![[]]);
    fails("def @f() { add(1, {\n", &expect![[]]);
}

#[test]
fn items() {
    fails(
        "dfe @a() { () }
         def b() { () }
         def @c(%x: int8 { %x }
         def @d(%x: int8, 1) { %x }
         declare @e(%x: int8);
         declare @g(%x: int8) -> int8 { %x }
         type !t int8;
         type !u = ;
         attr !v = (;
         #[a=1] type !w = int8;
         def @h() -> { () }
         def private private @i() { () }
         #![a=1]
         type !ok = int8;
         def @last(%x: !ok) { add(%x, 1) }
         #[a=1]",
        &expect![[]],
    );
    fails("def @f() { let %a = ; } } def @g() { exp() }", &expect![[]]);
}

#[test]
fn an_alias_is_a_type_or_an_attribute() {
    fails("attr !a = 1; def @f(%x: !a) { %x } type !b = !c;", &expect![[]]);
}

#[test]
fn at_most_twenty_errors() {
    let mut text = String::from("def @f() {\n");
    for i in 0..50 {
        text += &format!("  let %a{i} = exp(;\n");
    }
    text += "  ()\n}\n";
    let found = parse(&text).unwrap_err();
    assert_eq!(found.len(), anfora_ir::MAX_ERRORS);
    let lines: Vec<usize> = found.iter().map(|e| text[..e.span.clone().unwrap().start].matches('\n').count()).collect();
    assert_eq!(lines, (1..=20).collect::<Vec<_>>());
    let semantic: String = (0..50).map(|i| format!("def @f{i}() {{ exp(%nope) }}\n")).collect();
    assert_eq!(errors(&semantic).lines().count(), 20);
}
