//! Settings of contexts.

use std::borrow::Cow;
use std::sync::Arc;

use anfora_manager::{
    ConfigDef, ConfigKind, ConfigValue, ModulePass, Pass, PassContext, PassContextBuilder, PassRegistry, RegistryError,
    TextList, parse_pipeline,
};

use crate::support::empty_module;

static DEPTH: ConfigDef = ConfigDef::int("FuseOps.max_depth", 1, 4096, 256, "How many ops a group holds");
static GROWTH: ConfigDef =
    ConfigDef::limit("FoldConstant.max_growth_bytes", Some(16 << 10), "How much a fold may grow the module");
static VERBOSE: ConfigDef = ConfigDef::flag("verbose", "Say more");
static TARGET: ConfigDef = ConfigDef::text("target", "cpu", "What to compile for");
static ORDER: ConfigDef = ConfigDef {
    key: "order",
    kind: ConfigKind::OneOf(&["depth", "breadth"]),
    default: ConfigValue::Str(Cow::Borrowed("depth")),
    doc: "Which way to go",
};

static SHARE: ConfigDef = ConfigDef::float("share", 0.0, 1.0, 0.5, "How much of it");
static AXES: ConfigDef = ConfigDef::int_list("axes", -4, 3, &[0, 1], "Which axes");
static NAMES: ConfigDef = ConfigDef::text_list("names", &[], "Which functions");
static KINDS: ConfigDef = ConfigDef {
    key: "kinds",
    kind: ConfigKind::TextList { words: Some(&["call", "tuple", "branch"]) },
    default: ConfigValue::TextList(TextList::Static(&["call"])),
    doc: "Which expressions",
};

fn registry_of_lists() -> Arc<PassRegistry> {
    let mut registry = PassRegistry::new();
    for def in [&SHARE, &AXES, &NAMES, &KINDS] {
        registry.register_config(def.clone()).unwrap();
    }
    Arc::new(registry)
}

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
        assert_eq!(GROWTH.parse(text), Ok(ConfigValue::Limit(bytes)), "{text}");
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
    // No value is converted implicitly.
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
fn an_empty_setting_is_told_and_no_setting_is_the_defaults() {
    assert_eq!(message(builder().config_text("")), "`` is not of the form KEY=VALUE");
    assert_eq!(builder().build().unwrap().changed_config().count(), 0);
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

#[test]
fn numbers_and_lists_are_given_typed_or_as_text() {
    let builder = || PassContext::builder().registry(registry_of_lists());
    let defaults = builder().build().unwrap();
    assert_eq!(defaults.config::<f64>("share"), Ok(0.5));
    assert_eq!(defaults.config::<Vec<i64>>("axes"), Ok(vec![0, 1]));
    assert_eq!(defaults.config::<Vec<String>>("names"), Ok(Vec::new()));
    assert_eq!(defaults.config_of::<Vec<String>>(&KINDS), Ok(vec!["call".to_string()]));
    assert_eq!(defaults.changed_config().count(), 0);
    let typed = builder()
        .config("share", 0.25)
        .config("axes", vec![-1, 2])
        .config("names", &["main", "a b"][..])
        .config("kinds", vec!["tuple".to_string()]);
    let text = builder()
        .config_text("share=2.5e-1")
        .config_text("axes = [ -1, 2 ]")
        .config_text("names=[main,\"a b\"]")
        .config_text("kinds=[tuple]");
    for cx in [typed.build().unwrap(), text.build().unwrap()] {
        assert_eq!(cx.config::<f64>("share"), Ok(0.25));
        assert_eq!(cx.config::<Vec<i64>>("axes"), Ok(vec![-1, 2]));
        assert_eq!(cx.config::<Vec<String>>("names"), Ok(vec!["main".to_string(), "a b".to_string()]));
        let changed: Vec<String> = cx.changed_config().map(|(d, v)| format!("{}={v}", d.key)).collect();
        assert_eq!(changed, ["share=0.25", "axes=[-1,2]", "names=[main,\"a b\"]", "kinds=[tuple]"]);
        // Printed values are read as the same values.
        let again = changed.iter().fold(builder(), |b, text| b.config_text(text.as_str())).build().unwrap();
        assert!(again.changed_config().eq(cx.changed_config()));
    }
    // A whole number is accepted for any number, and negative zero becomes zero.
    assert_eq!(builder().config("share", 1).build().unwrap().config::<f64>("share"), Ok(1.0));
    let zero = builder().config("share", -0.0).build().unwrap().config::<f64>("share").unwrap();
    assert!(zero == 0.0 && zero.is_sign_positive());
    assert_eq!(builder().config_text("axes=[]").build().unwrap().config::<Vec<i64>>("axes"), Ok(Vec::new()));
}

#[test]
fn wrong_numbers_and_lists_are_told() {
    let builder = || PassContext::builder().registry(registry_of_lists());
    for (text, found) in [("2", "2.0"), ("-0.1", "-0.1"), ("NaN", "NaN"), ("inf", "inf"), ("half", "half"), ("", "")] {
        let said = message(builder().config_text(format!("share={text}")));
        assert_eq!(said, format!("`share` takes a number from 0.0 to 1.0, not `{found}`"));
    }
    let axes = "`axes` takes a list of whole numbers from -4 to 3 (such as `[1,2]`), not";
    for (text, found) in
        [("[0,4]", "4"), ("1", "1"), ("[1", "[1"), ("[1,]", "[1,]"), ("[a]", "[a]"), ("[1 2]", "[1 2]"), ("", "")]
    {
        assert_eq!(message(builder().config_text(format!("axes={text}"))), format!("{axes} `{found}`"));
    }
    assert_eq!(message(builder().config("axes", 1)), format!("{axes} `1`"));
    assert_eq!(
        message(builder().config_text("kinds=[call,tupel]")),
        "unknown value of `kinds` `tupel`; did you mean `tuple`? (known: branch, call, tuple)"
    );
    assert_eq!(
        message(builder().config("names", "main")),
        "`names` takes a list of texts (such as `[a,b]`), not `main`"
    );
    let cx = builder().build().unwrap();
    assert!(cx.config::<f64>("axes").is_err() && cx.config::<Vec<String>>("axes").is_err());
    assert!(cx.config::<i64>("share").is_err() && cx.config::<Vec<i64>>("names").is_err());
    let mut registry = PassRegistry::new();
    let outside = ConfigDef::float("x", 0.0, 1.0, 2.0, "");
    assert_eq!(registry.register_config(outside).unwrap_err(), RegistryError::Default("x"));
    let outside = ConfigDef::int_list("x", 0, 1, &[0, 2], "");
    assert_eq!(registry.register_config(outside).unwrap_err(), RegistryError::Default("x"));
}

#[test]
fn whatever_is_printed_is_read_as_the_same() {
    let mut random = fastrand::Rng::with_seed(7);
    let letters: Vec<char> = "ab9 ,\"\\[]{}=._-\n\u{e9}\t'".chars().collect();
    let any_float = ConfigDef::float("x", f64::MIN, f64::MAX, 0.0, "");
    let any_ints = ConfigDef::int_list("x", i64::MIN, i64::MAX, &[], "");
    let any_texts = ConfigDef::text_list("x", &[], "");
    for _ in 0..5000 {
        let float = f64::from_bits(random.u64(..));
        if float.is_finite() {
            let value = any_float.check(float.into()).unwrap();
            assert_eq!(any_float.parse(&value.to_string()), Ok(value));
        } else {
            assert!(any_float.check(float.into()).is_err());
        }
        let ints: Vec<i64> = (0..random.usize(..5)).map(|_| random.i64(..)).collect();
        let value = any_ints.check(ints.into()).unwrap();
        assert_eq!(any_ints.parse(&value.to_string()), Ok(value));
        let text = |random: &mut fastrand::Rng| -> String {
            (0..random.usize(..6)).map(|_| letters[random.usize(..letters.len())]).collect()
        };
        let texts: Vec<String> = (0..random.usize(..5)).map(|_| text(&mut random)).collect();
        let value = any_texts.check(texts.into()).unwrap();
        assert_eq!(any_texts.parse(&value.to_string()), Ok(value));
        // Any text is either read as a list or refused.
        let _ = any_texts.parse(&text(&mut random));
    }
}

#[test]
fn numbers_have_each_another_name() {
    static EXTENTS: [ConfigDef; 1] = [ConfigDef {
        key: "extents",
        kind: ConfigKind::Numbers { min: 0, max: 9 },
        default: ConfigValue::Numbers(Vec::new()),
        doc: "Extents by name",
    }];
    let numbers = |names: [&str; 2]| names.map(|n| (n.to_string(), 3)).to_vec();
    let mut options = anfora_manager::Options::new("P", &EXTENTS);
    let twice = options.set("extents", numbers(["n", "n"])).unwrap_err();
    assert_eq!(twice.to_string(), "`n` is given more than once");
    assert_eq!(options.text(), "");
    options.set("extents", numbers(["n", "m"])).unwrap();
    assert_eq!(options.text(), "{n=3,m=3}");
    assert_eq!(EXTENTS[0].parse("a=1,b=2,a=1").unwrap_err().to_string(), "`a` is given more than once");
}

/// A pass `FuseOps` that counts its setting `max_depth`, as a registry with settings has it.
fn registry_with_a_pass() -> Arc<PassRegistry> {
    let mut registry = (*registry()).clone();
    let made = || {
        ModulePass::new("FuseOps", 0, |_: &mut anfora_ir::Module, cx: &PassContext| {
            cx.count("depth", cx.config("FuseOps.max_depth")?);
            Ok(())
        })
    };
    registry.register_pass(made(), "Fuses").unwrap();
    Arc::new(registry)
}

#[test]
fn a_pipeline_gives_the_settings_of_a_pass_like_its_options() {
    let registry = registry_with_a_pass();
    let pipeline = parse_pipeline(&registry, "FuseOps,FuseOps{max_depth=64},FuseOps{max_depth=256},FuseOps").unwrap();
    assert_eq!(pipeline.to_string(), "FuseOps,FuseOps{max_depth=64},FuseOps{max_depth=256},FuseOps");
    // The setting of a pass wins over that of the context, even if it is the default.
    let cx = PassContext::builder().registry(registry.clone()).config("FuseOps.max_depth", 1000).build().unwrap();
    pipeline.apply(&mut empty_module(), &cx).unwrap();
    assert_eq!(cx.statistics().get("FuseOps", "depth"), 1000 + 64 + 256 + 1000);
    let wrong = |text: &str| parse_pipeline(&registry, text).unwrap_err().to_string();
    assert!(
        wrong("FuseOps{max_depth=0}").contains("a whole number from 1 to 4096"),
        "{}",
        wrong("FuseOps{max_depth=0}")
    );
    assert!(wrong("FuseOps{max_dept=3}").contains("did you mean `max_depth`?"), "{}", wrong("FuseOps{max_dept=3}"));
    assert!(wrong("FuseOps{max_depth=1,max_depth=2}").contains("given more than once"));
    // A setting that belongs to no pass of the pipeline is not an option.
    assert!(wrong("FuseOps{verbose=true}").contains("unknown option of FuseOps `verbose`"));
}

#[test]
fn passes_that_a_pass_runs_see_the_settings_that_it_was_given() {
    let mut registry = (*registry()).clone();
    let inner = ModulePass::new("Inner", 0, |_: &mut anfora_ir::Module, cx: &PassContext| {
        cx.count("depth", cx.config("FuseOps.max_depth")?);
        assert_eq!(cx.derive().build().unwrap().config::<u64>("FuseOps.max_depth"), Ok(64));
        assert_eq!(cx.changed_config().map(|(d, _)| d.key).collect::<Vec<_>>(), ["FuseOps.max_depth"]);
        Ok(())
    });
    let inner: Arc<dyn Pass> = Arc::new(inner);
    let outer = ModulePass::new("FuseOps", 0, move |module: &mut anfora_ir::Module, cx: &PassContext| {
        anfora_manager::run_pass(&*inner, module, cx)?;
        Ok(())
    });
    registry.register_pass(outer, "Fuses").unwrap();
    let cx = PassContext::with_registry(Arc::new(registry));
    let pipeline = parse_pipeline(cx.registry(), "FuseOps{max_depth=64}").unwrap();
    pipeline.apply(&mut empty_module(), &cx).unwrap();
    assert_eq!(cx.statistics().get("Inner", "depth"), 64);
    assert_eq!(cx.config::<u64>("FuseOps.max_depth"), Ok(256));
}
