//! The text format. A text that parses is printed as a text that parses to the same program.

#![no_main]

use std::sync::{Arc, LazyLock};

use anfora::ir::{MAX_ERRORS, OpRegistry, Source, first_difference, parse_module, verify_module};
use libfuzzer_sys::fuzz_target;

static REGISTRY: LazyLock<Arc<OpRegistry>> = LazyLock::new(anfora::onnx::registry);

fuzz_target!(|text: &str| {
    let module = match parse_module(Source::new("input", text), REGISTRY.clone()) {
        Ok(module) => module,
        Err(errors) => {
            assert!(!errors.is_empty() && errors.len() <= MAX_ERRORS);
            for error in errors.iter() {
                let span = error.span.clone().expect("every error has a place");
                assert!(text.get(span.clone()).is_some(), "{span:?} is not in the text: {error}");
            }
            return;
        }
    };
    let printed = module.to_string();
    let again = parse_module(Source::new("printed", printed.as_str()), REGISTRY.clone())
        .unwrap_or_else(|errors| panic!("{}\n{printed}", errors[0]));
    assert_eq!(again.to_string(), printed);
    if let Some(difference) = first_difference(&module, &again) {
        panic!("{difference}\n{printed}");
    }
    // A program that parses may be ill-formed, but the reports of both are the same.
    assert_eq!(verify_module(&module).is_ok(), verify_module(&again).is_ok(), "{printed}");
});
