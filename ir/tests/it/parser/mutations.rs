//! Invalid texts: parsing gives errors or modules and never panics.

use anfora_ir::MAX_ERRORS;
use proptest::prelude::*;

use super::parse;

const PROGRAM: &str = r#"#![version="1"]
type !t = (float32, Tensor[(8,), float32]); attr !a = [1, [2.5, "x\u{e9}"], shape(2, ?)];
#[doc="d"] declare @ext(%x: Tensor[(n, m + 1), float32], %y: Tensor[(m,), int8], Pure=1) -> Tensor[?, float32];
def private @g(%x: Tensor[(n,), float32], %f: fn(Tensor[(n,), float32], Tensor[(k,), int8]) -> fn(Any) -> (), K=fn(%q: int8) { %q }) { %x }
def @main(%x: Tensor[(8,), float32], %"a b": bool) -> Any {
  #[m=none] let %y: Tensor[(8,), float32] = add(%x, dense<Tensor[(8,), float32]>[-0.5]);
  dataflow { let %z = exp(%y); %s = (%z, %z); let %w = add(%s.0, %s.1); output(%w); }
  let %f = fn(%v: float32) -> float32 { if (%"a b") { %f(exp(%v)) } else { 1e-3f } };
  let %b = { let %k = match_cast(%x, to=Tensor[(floordiv(n, 2), n), float32]); note(%k, axis=-1, value=[@g, add, !t, fn() -> Any]) };
  /* c /* d */ */ let %o: Any = onnx.Op(%b, none, "k"=dense<Tensor[(2,), int8]>"0x01ff"); // e
  (%o, %f(-1.5f), op "odd name!"(%w), ()).0
}
"#;

fn no_panic(text: &str) -> Result<(), TestCaseError> {
    match parse(text) {
        Ok(module) => {
            let printed = module.to_string();
            let again = parse(&printed).map_err(|e| TestCaseError::fail(format!("{}\n{printed}", e[0])))?;
            prop_assert_eq!(again.to_string(), printed);
        }
        Err(errors) => {
            prop_assert!(!errors.is_empty() && errors.len() <= MAX_ERRORS);
            for e in &errors {
                let span = e.span.clone().expect("every error has a place");
                prop_assert!(text.get(span.clone()).is_some(), "{:?} is not in the text: {}", span, e);
                for (span, _) in &e.related {
                    prop_assert!(text.get(span.clone()).is_some());
                }
            }
        }
    }
    Ok(())
}

const PIECES: &[&str] = &[
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "<",
    ">",
    ",",
    ";",
    ":",
    "=",
    "->",
    "-",
    "+",
    "*",
    ".",
    "?",
    "!",
    "#[",
    "#![",
    "let",
    "def",
    "fn",
    "if",
    "else",
    "dataflow",
    "output",
    "%x",
    "%y",
    "@g",
    "!t",
    "1",
    "1.5f",
    "\"s\"",
    "n",
    "Tensor",
    "dense",
    "shape",
    "none",
    "op",
    "type",
    "attr",
    "declare",
    "\"",
    "/*",
    "é",
    "\\",
    "add",
    "inf",
    "nan",
    "match_cast",
    "to",
    "Any",
    "\n",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn truncated(at in 0..PROGRAM.len()) {
        if PROGRAM.is_char_boundary(at) {
            no_panic(&PROGRAM[..at])?;
            no_panic(&PROGRAM[at..])?;
        }
    }

    #[test]
    fn mutated(edits in proptest::collection::vec((0..PROGRAM.len(), 0usize..12, 0..PIECES.len()), 1..6)) {
        let mut text = PROGRAM.to_string();
        for (at, len, piece) in edits {
            let at = (0..=at.min(text.len())).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
            let end = (at + len..=text.len()).find(|&i| text.is_char_boundary(i)).unwrap_or(text.len());
            text.replace_range(at..end.max(at), PIECES[piece]);
        }
        no_panic(&text)?;
    }

    #[test]
    fn swapped(a in 0..PROGRAM.len(), b in 0..PROGRAM.len(), len in 1usize..40) {
        let piece = |at: usize| PROGRAM.get(at..at + len).unwrap_or("");
        let text = match PROGRAM.get(..b) {
            Some(front) => [front, piece(a), &PROGRAM[b..]].concat(),
            None => String::new(),
        };
        no_panic(&text)?;
    }

    #[test]
    fn soup(pieces in proptest::collection::vec(0..PIECES.len(), 0..60)) {
        let text: Vec<&str> = pieces.iter().map(|&p| PIECES[p]).collect();
        no_panic(&text.join(" "))?;
        no_panic(&format!("def @f(%x: int8) {{ {} }}", text.join(" ")))?;
        no_panic(&text.concat())?;
    }
}

#[test]
fn the_program_itself_is_one() {
    if let Err(errors) = parse(PROGRAM) {
        panic!("{}", super::shown(PROGRAM, &errors));
    }
}
