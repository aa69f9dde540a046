//! Settings of contexts.

use std::borrow::Cow;
use std::sync::Arc;

use anfora_manager::{
    ConfigDef, ConfigKind, ConfigValue, ModulePass, Pass, PassContext, PassContextBuilder, PassRegistry, RegistryError,
};

use crate::support::empty_module;

static DEPTH: ConfigDef = ConfigDef::int("FuseOps.max_depth", 1, 4096, 256, "How many ops a group holds");
static GROWTH: ConfigDef =
    ConfigDef::bytes("FoldConstant.max_growth_bytes", Some(16 << 10), "How much a fold may grow the module");
static VERBOSE: ConfigDef = ConfigDef::flag("verbose", "Say more");
static TARGET: ConfigDef = ConfigDef::text("target", "cpu", "What to compile for");
static ORDER: ConfigDef = ConfigDef {
    key: "order",
    kind: ConfigKind::OneOf(&["depth", "breadth"]),
    default: ConfigValue::Str(Cow::Borrowed("depth")),
    doc: "Which way to go",
};

fn registry() -> Arc<PassRegistry> {
    let mut registry = PassRegistry::new();
    for def in [&DEPTH, &GROWTH, &VERBOSE, &TARGET, &ORDER] {
        registry.register_config(def.clone()).unwrap();
    }
    Arc::new(registry)
}

fn builder() -> PassContextBuilder {
    PassContext::builder().registry(registry())
}

fn message(builder: PassContextBuilder) -> String {
    builder.build().unwrap_err().to_string()
}

#[test]
fn defaults_are_the_declared_ones() {
    for cx in [builder().build().unwrap(), PassContext::with_registry(registry())] {
        assert_eq!(cx.config::<u64>("FuseOps.max_depth"), Ok(256));
        assert_eq!(cx.config::<u32>("FuseOps.max_depth"), Ok(256));
        assert_eq!(cx.config::<i64>("FuseOps.max_depth"), Ok(256));
        assert_eq!(cx.config::<usize>("FuseOps.max_depth"), Ok(256));
        assert_eq!(cx.config::<u64>("FoldConstant.max_growth_bytes"), Ok(16384));
        assert_eq!(cx.config::<bool>("verbose"), Ok(false));
        assert_eq!(cx.config::<String>("target"), Ok("cpu".to_string()));
        assert_eq!(cx.config_of::<String>(&ORDER), Ok("depth".to_string()));
        assert_eq!(cx.changed_config().count(), 0);
    }
}

#[test]
fn values_are_given_typed_or_as_text() {
    let cx = builder()
        .config("FuseOps.max_depth", 64)
        .config_text("FoldConstant.max_growth_bytes=unlimited")
        .config("verbose", true)
        .config_text(" target = a=b ")
        .build()
        .unwrap();
    assert_eq!(cx.config::<i64>("FuseOps.max_depth"), Ok(64));
    assert_eq!(cx.config::<Option<u64>>("FoldConstant.max_growth_bytes"), Ok(None));
    assert_eq!(cx.config::<u64>("FoldConstant.max_growth_bytes"), Ok(u64::MAX));
    assert_eq!(cx.config_of::<bool>(&VERBOSE), Ok(true));
    assert_eq!(cx.config::<String>("target"), Ok("a=b".to_string()));
    let changed: Vec<String> = cx.changed_config().map(|(d, v)| format!("{}={v}", d.key)).collect();
    assert_eq!(
        changed,
        ["FuseOps.max_depth=64", "FoldConstant.max_growth_bytes=unlimited", "verbose=true", "target=a=b"]
    );
    let derived = cx.derive().config("FuseOps.max_depth", 65).build().unwrap();
    assert_eq!(derived.config::<i64>("FuseOps.max_depth"), Ok(65));
    assert_eq!(derived.config::<bool>("verbose"), Ok(true));
}

#[test]
fn bytes_have_units() {
    for (text, bytes) in [
        ("0", Some(0)),
        ("4096", Some(4096)),
        ("16KiB", Some(16 << 10)),
        ("1MiB", Some(1 << 20)),
        ("2GiB", Some(2 << 30)),
        ("1_000", Some(1000)),
        ("unlimited", None),
    ] {
        assert_eq!(GROWTH.parse(text), Ok(ConfigValue::Bytes(bytes)), "{text}");
    }
    for text in ["", "-1", "KiB", "1KB", "1.5MiB", "99999999999GiB", "many"] {
        assert!(GROWTH.parse(text).is_err(), "{text}");
    }
}

#[test]
fn misspelt_keys_are_told() {
    let known = "(known: FoldConstant.max_growth_bytes, FuseOps.max_depth, order, target, verbose)";
    let expected = format!("unknown config key `FuseOps.maxdepth`; did you mean `FuseOps.max_depth`? {known}");
    assert_eq!(message(builder().config("FuseOps.maxdepth", 1)), expected);
    assert_eq!(message(builder().config_text("FuseOps.maxdepth=1")), expected);
    let cx = builder().build().unwrap();
    assert_eq!(cx.config::<u64>("FuseOps.maxdepth").unwrap_err().to_string(), expected);
    assert_eq!(message(PassContext::builder().config("x", 1)), "unknown config key `x` (there are none)");
}

#[test]
fn wrong_values_are_told() {
    let range = "`FuseOps.max_depth` takes a whole number from 1 to 4096, not";
    assert_eq!(message(builder().config("FuseOps.max_depth", 0)), format!("{range} `0`"));
    assert_eq!(message(builder().config("FuseOps.max_depth", 4097)), format!("{range} `4097`"));
    // Nothing is turned into something else unasked.
    assert_eq!(message(builder().config("FuseOps.max_depth", true)), format!("{range} `true`"));
    assert_eq!(message(builder().config("FuseOps.max_depth", "64")), format!("{range} `64`"));
    assert_eq!(message(builder().config_text("FuseOps.max_depth=1.5")), format!("{range} `1.5`"));
    assert_eq!(message(builder().config_text("FuseOps.max_depth=")), format!("{range} ``"));
    assert_eq!(message(builder().config("verbose", 1)), "`verbose` takes `true` or `false`, not `1`");
    assert_eq!(message(builder().config("target", false)), "`target` takes a text, not `false`");
    assert_eq!(
        message(builder().config_text("order=breadht")),
        "unknown value of `order` `breadht`; did you mean `breadth`? (known: breadth, depth)"
    );
    assert!(message(builder().config_text("FoldConstant.max_growth_bytes=x")).contains("`unlimited`, not `x`"));
    assert_eq!(message(builder().config("verbose", true).config("verbose", true)), "`verbose` is given more than once");
    assert_eq!(message(builder().config_text("verbose")), "`verbose` is not of the form KEY=VALUE");
}

#[test]
fn reading_as_another_type_is_told() {
    let cx = builder().config("FuseOps.max_depth", 300).build().unwrap();
    assert_eq!(
        cx.config::<bool>("FuseOps.max_depth").unwrap_err().to_string(),
        "`FuseOps.max_depth` takes a whole number from 1 to 4096, and was read as bool"
    );
    assert!(cx.config::<Option<u64>>("target").is_err());
}

#[test]
fn a_pass_reads_what_it_declares_under_any_context() {
    let pass = ModulePass::new("p", 0, |module, cx| {
        crate::support::set_bumps(module, cx.config_of(&DEPTH)?);
        Ok(())
    });
    for (cx, depth) in [(PassContext::new(), 256), (builder().config("FuseOps.max_depth", 7).build().unwrap(), 7)] {
        let mut module = empty_module();
        pass.apply(&mut module, &cx).unwrap();
        assert_eq!(crate::support::bumps(&module), depth);
    }
    let wrong = ModulePass::new("p", 0, |_, cx| cx.config::<u64>("nope").map(drop).map_err(Into::into));
    let failure = wrong.apply(&mut empty_module(), &PassContext::new()).unwrap_err();
    assert_eq!(
        failure.to_diagnostics()[0].message,
        "pass `p` failed: the configuration cannot be read: unknown config key `nope` (there are none)"
    );
}

#[test]
fn keys_are_declared_once_and_defaults_fit() {
    let mut registry = PassRegistry::new();
    registry.register_config(DEPTH.clone()).unwrap();
    let twice = registry.register_config(DEPTH.clone()).unwrap_err();
    assert_eq!(twice.to_string(), "there is a config key `FuseOps.max_depth` already");
    let wrong = ConfigDef::int("n", 1, 2, 3, "");
    assert_eq!(registry.register_config(wrong).unwrap_err(), RegistryError::Default("n"));
    let name = ConfigDef::flag("a b", "");
    assert_eq!(registry.register_config(name).unwrap_err(), RegistryError::Name("a b".to_string()));
    assert_eq!(registry.configs().len(), 1);
}
