//! Several diagnostics as one error.

use std::error::Error;
use std::sync::Arc;

use anfora_ir::{Diagnostic, Module, OpRegistry, Source, parse_attr, parse_module, parse_type, verify_module};

const WRONG: &str = "def @f(%x: float32) {\n  %y\n}\ndef @g() { @h }\n";

fn read() -> Result<Module, Box<dyn Error>> {
    Ok(parse_module(Source::new("wrong.anf", WRONG), Arc::new(OpRegistry::new()))?)
}

#[test]
fn all_errors_of_a_text_are_shown_with_line_and_column() {
    let error = read().unwrap_err();
    for text in [error.to_string(), format!("{error:?}")] {
        for part in ["wrong.anf:2:3", "%y\n", "^^", "unknown local `%y`", "wrong.anf:4:12", "`@h`"] {
            assert!(text.contains(part), "{part}:\n{text}");
        }
        assert!(!text.ends_with('\n'));
    }
}

#[test]
fn they_are_a_list() {
    let errors = parse_module(Source::new("wrong.anf", WRONG), Arc::new(OpRegistry::new())).unwrap_err();
    assert_eq!(errors.len(), 2);
    assert_eq!(errors.source().map(|s| s.name()), Some("wrong.anf"));
    let messages: Vec<&str> = errors.iter().map(|d| &*d.message).collect();
    let wanted = ["unknown local `%y`", "unknown global `@h`"];
    assert_eq!(messages, wanted);
    assert_eq!(errors[1].message, wanted[1]);
    let all: Vec<Diagnostic> = errors.clone().into_vec();
    assert!(all.iter().map(|d| &*d.message).eq(wanted));
    assert!(errors.into_iter().map(|d| d.message.to_string()).eq(wanted));
}

#[test]
fn types_attributes_and_ill_formed_modules_are_refused_alike() {
    let mut module = Module::new(Arc::new(OpRegistry::new()));
    let error = parse_type(&mut module.cx, "Tensor[(2,), flaot32]").unwrap_err();
    assert!(error.to_string().contains("type:1:14"), "{error}");
    let error = parse_attr(&mut module.cx, "[1, ").unwrap_err();
    assert!(error.to_string().contains("attribute:1:"), "{error}");
    let text = "def @f(%x: float32) {\n  (%x, %x)\n}\n";
    let mut module = parse_module(Source::new("f.anf", text), Arc::new(OpRegistry::new())).unwrap();
    let (function, cx) = module.get_mut(module.find("f").unwrap()).unwrap();
    let root = function.body.root();
    function.body.set_type(root, cx.types.unit());
    let error = verify_module(&module).unwrap_err();
    assert!(error.to_string().contains("f.anf:2:3"), "{error}");
}
