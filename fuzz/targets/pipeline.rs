//! Pipelines in text. A pipeline that parses is written as a text that parses to the same pipeline.

#![no_main]

use std::sync::{Arc, LazyLock};

use anfora::manager::{PassRegistry, parse_pipeline};
use libfuzzer_sys::fuzz_target;

static REGISTRY: LazyLock<Arc<PassRegistry>> = LazyLock::new(anfora::passes::registry);

fuzz_target!(|text: &str| {
    match parse_pipeline(&REGISTRY, text) {
        Ok(pipeline) => {
            let written = pipeline.to_string();
            let again = parse_pipeline(&REGISTRY, &written).unwrap_or_else(|error| panic!("{error}\n{written}"));
            assert_eq!(again.to_string(), written);
        }
        Err(error) => {
            let _ = (error.to_string(), error.marked());
        }
    }
});
