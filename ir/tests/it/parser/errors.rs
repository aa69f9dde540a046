//! Every kind of error: its place, its message, and that parsing continues after it.

use expect_test::expect;

use super::{errors, fails, fails_in, module, parse};

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
        &expect![[r#"
            ad | unknown operator `ad` | did you mean `add`?
            %valeu | unknown local `%valeu` | did you mean `%value`?
            %zzzzzzz | unknown local `%zzzzzzz`
            axes | `note` has no attribute `axes` | did you mean `axis`?
            axis | attribute `axis` of `note` must be an integer
            match_cast(%x) | `match_cast` needs the attribute `to`
            @mian | unknown global `@mian` | define it, or declare it: `declare @mian(…) -> …;`
            Tensr | unknown element type `Tensr` | did you mean `Tensor`?
            [ | expected `=`, found `[` | a binding is `let %x = …;`
            "odd nam!" | unknown operator `odd nam!` | did you mean `odd name!`?
            flaot32 | unknown operator `flaot32` | did you mean the element type `float32`?
            !alas | unknown alias `!alas` | define it before: `type !alas = …;` or `attr !alas = …;`
            nonsense.op | unknown operator `nonsense.op`
        "#]],
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
        &expect![[r#"
            !t | the alias `!t` is defined twice (!t: first defined here)
            %x | the parameter `%x` is defined twice (%x: first defined here)
            K | the attribute `K` is defined twice (K: first defined here)
            value | the attribute `value` is defined twice (value: first defined here)
            @f | `@f` is defined twice (@f: first defined here)
            @f | `@f` is defined twice (@f: first defined here)
        "#]],
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
        &expect![[r#"
            %b | unknown local `%b` (%b: bound in a block that does not enclose this place)
            %d | unknown local `%d` (%d: visible only in its dataflow region) | name it in the region's `output(%d)`
            %h | unknown local `%h` | did you mean `%g`?
            %later | unknown local `%later`
            %x | unknown local `%x` | did you mean `%z`?
            %b | unknown local `%b` (%b: bound in a block that does not enclose this place)
        "#]],
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
        &expect![[r#"
            } | the dataflow region has no `output(…)` | end it with `output(%x)`, or `output()`
            dataflow | a dataflow region cannot hold another
            %x | `%x` is bound outside the region, and visible after it anyway
            %b | `%b` is named as an output twice
            %g | `%g` is a graph node; only a `let` of the region can be an output
            exp | expected a binding or `output(…)`, found `exp` | a dataflow region holds bindings and ends with `output(%x, …)`
        "#]],
    );
}

#[test]
fn graph_nodes_with_blocks_are_used_once() {
    fails_in(
        "%g = if (%c) { %x } else { %y };
         %h = fn(%a: int8) { %a };
         add(%g, note(%g, %h, %h))",
        &expect![[r#"
            %g | `%g` names a node with a block, which can be used only once | bind it with `let %g = …`
            %h | `%h` names a node with a block, which can be used only once | bind it with `let %h = …`
        "#]],
    );
}

#[test]
fn numbers_out_of_range() {
    fails_in(
        "(128i8, -129i8, 2147483648, -1u8, 256u8, 9999999999999999999999999999999999999999, 1e39f, 65520f16, 1.5, inf, 1q7, 0x10, 1.5i8,
          dense<Tensor[(2,), int8]>[1, 128], dense<Tensor[(2,), float32]>[1, 1f], dense<Tensor[(2,), float32]>[nan(0x1), 1])",
        &expect![[r#"
            128i8 | `128i8` is out of range for int8 | int8 goes from -128 to 127
            -129i8 | `-129i8` is out of range for int8 | int8 goes from -128 to 127
            2147483648 | `2147483648` is out of range for int32 | int32 goes from -2147483648 to 2147483647
            -1u8 | `-1u8` is out of range for uint8 | uint8 goes from 0 to 255
            256u8 | `256u8` is out of range for uint8 | uint8 goes from 0 to 255
            9999999999999999999999999999999999999999 | `9999999999999999999999999999999999999999` is out of range for int32 | int32 goes from -2147483648 to 2147483647
            1e39f | `1e39f` is out of range for float32 | the largest float32 is 3.4028234663852886e38
            65520f16 | `65520f16` is out of range for float16 | the largest float16 is 6.5504e4
            1.5 | `1.5` needs a suffix | write `1.5f` for float32
            inf | `inf` needs a suffix | write `inff` for float32
            1q7 | unknown suffix `q7` of a number | the suffixes are i8 i16 i64 u8 u16 u32 u64 f f16 bf16 f64; without one it is int32
            0x10 | `0x10` is not a number of type int32
            1.5i8 | `1.5i8` is not a number of type int8
            128 | `128` is out of range for int8 | int8 goes from -128 to 127
            1f | `1f` is not a number of type float32
            0x1 | `0x1` are not the bits of a float32 NaN | such as nan(0x7fc00000)
        "#]],
    );
}

#[test]
fn constants_that_do_not_fit_their_type() {
    fails_in(
        "(dense<Tensor[(2, 2), float32]>[1, 2, 3], dense<Tensor[(n,), float32]>[1], dense<(int8, int8)>[1],
          dense<Tensor[(2,), float32]>\"0x00\", dense<Tensor[(2,), float32]>\"zz\", dense<Tensor[(9999999999, 9999999999), int8]>[1, 2],
          dense<Tensor[(2,), string]>[\"a\"])",
        &expect![[r#"
            dense<Tensor[(2, 2), float32]>[1, 2, 3] | the type has 4 elements, but 3 are given | one element alone stands for all of them
            n | unknown symbolic dimension `n` | a parameter's type or a `match_cast` binds a dimension that stands alone in it; `?` is any
            (int8, int8) | a constant has a tensor type of constant extents, not (Tensor[(), int8], Tensor[(), int8]) | such as `dense<Tensor[(2, 2), float32]>[1, 2, 3, 4]`
            dense<Tensor[(2,), float32]>"0x00" | a tensor of 2 float32 elements takes 8 bytes, not 1
            "zz" | these are not bytes | raw bytes are `"0x…"` with two hexadecimal digits a byte, little-endian
            dense<Tensor[(9999999999, 9999999999), int8]>[1, 2] | the type has more elements than can be counted, but 2 are given | one element alone stands for all of them
            dense<Tensor[(2,), string]>["a"] | the shape has 2 elements, but 1 are given
        "#]],
    );
    fails_in(
        "dense<Tensor[(2,), complex64]>[1, 2]",
        &expect![[r#"
        1 | elements of type complex64 are not written as numbers | give their bytes, little-endian: `dense<…>"0x…"`
    "#]],
    );
    fails_in(
        "dense<Tensor[(2,), float32]>[elided 4096]",
        &expect![[r#"
        elided | these elements were left out when this was printed | print it again without eliding
    "#]],
    );
    fails_in(
        "dense<Tensor[(2,), bool]>[true, 2]",
        &expect![[r#"
        2 | `2` is out of range for bool | bool goes from 0 to 1
    "#]],
    );
    fails_in(
        "dense<Tensor[(2,), int8]>[1, inf]",
        &expect![[r#"
        inf | expected an element of type int8, found `inf`
    "#]],
    );
    fails_in(
        "dense<Tensor[(2,), int8]>{1}",
        &expect![[r#"
        { | expected `[` or a string, found `{` | the elements are `[1, 2]`, or raw bytes as `"0x0000803F"`
    "#]],
    );
}

#[test]
fn characters_strings_and_comments() {
    fails_in(
        "let %a = §x; let %b = exp(%\"y); \n %b",
        &expect![[r#"
        § | unexpected character `§`
        %"y);  | the string is not closed | a string ends on its line; write `\n` for a line break
    "#]],
    );
    fails_in(
        "let %\"a\\q\" = %x; note(%x, value=\"\\u{110000}\")",
        &expect![[r#"
        \q | unknown escape in a string | the escapes are `\"`, `\\`, `\n`, `\t` and `\u{…}`
        \u{110000} | unknown escape in a string | the escapes are `\"`, `\\`, `\n`, `\t` and `\u{…}`
    "#]],
    );
    fails_in(
        "let % = %x; @",
        &expect![[r#"
        % | `%` without a name | a local is `%name` or `%"any string"`
        @ | `@` without a name | a global is `@name` or `@"any string"`
    "#]],
    );
    fails(
        "def @f() { () } /* /* */",
        &expect![[r#"
        /* /* */ | the comment is not closed | `/* … */` nest
    "#]],
    );
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
        &expect![[r#"
            %y | expected `,` or `)`, found `%y`
            ; | expected `,` or `)`, found `;`
            let | expected `;`, found `let` | a binding ends with `;`
            x | expected a local (`%name`), found `x` | a binding is `let %x = …;`
            = | expected a type, found `=` | such as `Tensor[(8,), float32]`, `float32`, `(A, B)`, `fn(A) -> B` or `Any`
            1 | expected `=`, found `1` | a binding is `let %x = …;`
            %c | expected `(`, found `%c`
            ; | expected `else`, found `;` | an `if` is an expression and has both branches
            } | the block has no result | a block ends with an expression, such as `()`
            if | expected `{`, found `if` | branches are blocks: `else { if (…) { … } else { … } }`
            ) | expected `:`, found `)` | parameters have types: `%x: Tensor[(8,), float32]`
            1 | expected `->` or `{`, found `1`
            . | expected the number of a field after `.` | such as `%x.0`
            99999999999 | no tuple has a field 99999999999
            %x | expected an attribute (`name = value`), found `%x` | operands stand before attributes
            axis | unknown operator `axis`
            1 | expected `,` or `)`, found `1`
            ; | expected `,` or `)`, found `;`
            %nope | unknown local `%nope`
        "#]],
    );
}

#[test]
fn blocks_end_with_an_expression() {
    fails_in(
        "let %a = exp(%x);",
        &expect![[r#"
        } | the block has no result | a block ends with an expression, such as `()`
    "#]],
    );
    fails_in(
        "exp(%x);",
        &expect![[r#"
        ; | expected `}`, found `;` | the result of a block has no `;`; to evaluate and go on, write `let %name = …;`
    "#]],
    );
    fails_in(
        "exp(%x) exp(%y)",
        &expect![[r#"
        exp | expected `}`, found `exp` | a block ends with one expression
    "#]],
    );
    fails_in(
        "#[a=1] exp(%x)",
        &expect![[r#"
        exp | `#[…]` belongs to a binding or an item, not to the result of a block
    "#]],
    );
    fails_in(
        "let %a = let %b = 1; %a",
        &expect![[r#"
        let | expected an expression, found `let` | bindings stand in a block: `{ let %x = …; %x }`
    "#]],
    );
    fails(
        "def @f() {\n  let %a = 1;\n",
        &expect![[r#"
            (the end) | expected an expression, found the end of the text ({: this block is not closed)
        "#]],
    );
    fails(
        "def @f() { add(1, {\n",
        &expect![[r#"
            (the end) | expected an expression, found the end of the text ({: this block is not closed)
        "#]],
    );
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
        &expect![[r#"
            dfe | expected an item, found `dfe` | did you mean `def`?
            b | expected a global (`@name`), found `b`
            { | expected `,` or `)`, found `{`
            1 | expected a parameter, an attribute or `)`, found `1` | parameters are `%x: TYPE` and stand before attributes, which are `name = value`
            @e | the result type of `@e` is not stated | a declaration has no block to find it in: write `-> TYPE`, or `-> ()`
            { | expected `;`, found `{` | a declaration has no block
            int8 | expected `=`, found `int8`
            ; | expected a type, found `;` | such as `Tensor[(8,), float32]`, `float32`, `(A, B)`, `fn(A) -> B` or `Any`
            ; | expected a type, found `;` | such as `Tensor[(8,), float32]`, `float32`, `(A, B)`, `fn(A) -> B` or `Any`
            { | expected a type, found `{` | such as `Tensor[(8,), float32]`, `float32`, `(A, B)`, `fn(A) -> B` or `Any`
            private | expected a global (`@name`), found `private`
            1 | operand 1 is Tensor[(), int32], not Tensor[(), int8]
            (the end) | `#[…]` belongs to a binding or an item, but the text ends
        "#]],
    );
    fails(
        "def @f() { let %a = ; } } def @g() { exp() }",
        &expect![[r#"
        ; | expected an expression, found `;`
        } | the block has no result | a block ends with an expression, such as `()`
        } | expected an item, found `}` | a module consists of `def @f(…) { … }`, `declare @f(…);`, `type !t = …;` and `attr !a = …;`
        exp() | `exp` takes 1 operands, not 0
    "#]],
    );
}

#[test]
fn an_alias_is_a_type_or_an_attribute() {
    fails(
        "attr !a = 1; def @f(%x: !a) { %x } type !b = !c;",
        &expect![[r#"
        !a | `!a` is an attribute, not a type
        !c | unknown alias `!c` | did you mean `!a`?
    "#]],
    );
}

#[test]
fn at_most_twenty_errors() {
    let mut text = String::from("def @f() {\n");
    for i in 0..50 {
        text += &format!("  let %a{i} = exp(;\n");
    }
    text += "  ()\n}\n";
    let Err(found) = parse(&text) else { panic!("the text has errors") };
    assert_eq!(found.len(), anfora_ir::MAX_ERRORS);
    let lines: Vec<usize> = found.iter().map(|e| text[..e.span.clone().unwrap().start].matches('\n').count()).collect();
    assert_eq!(lines, (1..=20).collect::<Vec<_>>());
    let semantic: String = (0..50).map(|i| format!("def @f{i}() {{ exp(%nope) }}\n")).collect();
    assert_eq!(errors(&semantic).lines().count(), 20);
}

#[test]
fn a_broken_let_is_not_held_against_its_annotation() {
    let text = "def @main(%x: Tensor[(8,), float32]) { let %a: Tensor[(q,), float32] note(%x); %a }";
    expect![[r#"
        note | expected `=`, found `note` | a binding is `let %x = …;`
    "#]]
    .assert_eq(&errors(text));
}

#[test]
fn the_part_with_the_wrong_type_is_underlined() {
    fails(
        "declare @g(%x: (int8, int8)) -> fn(int8) -> (int8, int8);
         def @operand(%x: (int8, bool)) { add(%x.0, @h(%x.0, %x)) }
         def private @h(%x: int8, %y: (int8, bool)) { %y }
         def @argument(%x: (int8, int8)) { @g(%x)((%x, %x)) }
         def @annotation(%x: int8) { let %y: (int8, int8) = %x; %y }
         def @condition(%x: int8) { if (add(%x, %x)) { %x } else { %x } }
         def @result(%f: fn(int8) -> int8) -> fn(int8) -> bool { %f }
         def @inner(%x: int8) { fn(%y: int8) -> (bool, bool) { %y } }
         def private @again(%x: int8) { @again(%x) }",
        &expect![[r#"
            @h(%x.0, %x) | operand 1 is (Tensor[(), int8], Tensor[(), bool]), not Tensor[(), int8]
            (%x, %x) | argument 0 is ((Tensor[(), int8], Tensor[(), int8]), (Tensor[(), int8], Tensor[(), int8])), but Tensor[(), int8] is expected
            (int8, int8) | `%y` is Tensor[(), int8], but (Tensor[(), int8], Tensor[(), int8]) is stated
            add(%x, %x) | a condition is a rank-0 bool tensor, not Tensor[(), int8]
            fn(int8) -> bool | `@result` returns fn(Tensor[(), int8]) -> Tensor[(), int8], but fn(Tensor[(), int8]) -> Tensor[(), bool] is stated
            (bool, bool) | the `fn` returns Tensor[(), int8], but (Tensor[(), bool], Tensor[(), bool]) is stated
            @again | `@again` calls itself, but its result type is not stated | state it: `-> TYPE` behind the parameters
        "#]],
    );
}

#[test]
fn keywords_are_no_names_of_operators() {
    let keywords = [
        "Any", "attr", "dataflow", "declare", "def", "dense", "else", "false", "fn", "if", "let", "none", "op",
        "output", "private", "shape", "Tensor", "true", "type",
    ];
    for word in keywords {
        let found = errors(&format!("def @f() {{ {word}(1) }}"));
        assert!(!found.contains("unknown operator"), "{word}: {found}");
        let found = errors(&format!("declare {word}"));
        assert!(found.contains(&format!("found `{word}`")), "{word}: {found}");
    }
}

/// Returns the text of a function with this block, after it was read.
fn prints_main(block: &str) -> String {
    module(&format!("def @main() {{ {block} }}")).to_text()
}

#[test]
fn wrong_escapes_and_what_is_not_closed_are_underlined() {
    let right = prints_main(r#"note(1, value="a\"\\\n\t\u{e9}z")"#);
    assert!(right.contains(r#"value="a\"\\\n\téz""#), "{right}");
    fails(
        r#"def @f() { note(1, value="ab\q") }"#,
        &expect![[r#"
        \q | unknown escape in a string | the escapes are `\"`, `\\`, `\n`, `\t` and `\u{…}`
    "#]],
    );
    fails(
        r#"def @f() { note(1, value="\u{110000}") }"#,
        &expect![[r#"
        \u{110000} | unknown escape in a string | the escapes are `\"`, `\\`, `\n`, `\t` and `\u{…}`
    "#]],
    );
    fails(
        r#"def @f() { note(1, value="\u12") }"#,
        &expect![[r#"
        \u | unknown escape in a string | the escapes are `\"`, `\\`, `\n`, `\t` and `\u{…}`
    "#]],
    );
    fails(
        "def @f() { é }",
        &expect![[r#"
        é | unexpected character `é`
    "#]],
    );
    fails(
        "def @f() { note(1, value=\"a) }",
        &expect![[r#"
        "a) } | the string is not closed | a string ends on its line; write `\n` for a line break
    "#]],
    );
    fails(
        "def @f() { 1 } /* /* */",
        &expect![[r#"
        /* /* */ | the comment is not closed | `/* … */` nest
    "#]],
    );
}
