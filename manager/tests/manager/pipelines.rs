//! Pipelines as text.

use std::sync::Arc;

use anfora_manager::{
    ConfigError, MAX_NESTING, OptionDef, Options, Pass, PassContext, PassEntry, PassError, PassInfo, PassRegistry,
    PipelineError, PipelineText, RegistryError, parse_pipeline,
};

use crate::support::{bump, bumps, empty_module, idle};

const OPTIONS: &[OptionDef] = &[
    OptionDef::flag("commutative", "Sort operands"),
    OptionDef::int("limit", 0, 100, 10, "How many"),
    OptionDef::text("entry", "", "Where to begin"),
];

const TIDY_OPTIONS: &[OptionDef] = &[
    OptionDef::int("rounds", 0, 9, 1, "How often"),
    OptionDef::one_of("first", &["nothing", "Fold", "O1"], "nothing", "What comes first"),
    OptionDef::text("entry", "", "Where to begin"),
];

/// Returns the text of the pipeline `tidy`, which cannot begin at `nowhere`.
fn tidy(options: &Options) -> Result<String, ConfigError> {
    let (rounds, first): (u32, String) = (options.get("rounds")?, options.get("first")?);
    let entry: String = options.get("entry")?;
    if entry == "nowhere" {
        let (key, expected) = ("entry".to_string(), "a function".to_string());
        return Err(ConfigError::Value { key, expected, found: format!("`{entry}`") });
    }
    let first = if first == "nothing" { String::new() } else { format!("{first},") };
    Ok(format!("{first}fixpoint<{rounds}>(Dce)"))
}

fn registry() -> PassRegistry {
    let mut registry = PassRegistry::new();
    registry
        .register(PassEntry {
            name: "Cse",
            doc: "Merges what is equal",
            opt_level: 0,
            options: OPTIONS,
            configs: &[],
            make: |options| {
                let (limit, commutative): (i64, bool) = (options.get("limit")?, options.get("commutative")?);
                if commutative && limit == 0 {
                    return Err(PassError::new("`commutative` wants a limit"));
                }
                Ok(Arc::new(anfora_manager::ModulePass::new("Cse", 0, move |module, _| {
                    crate::support::set_bumps(module, limit);
                    Ok(())
                })))
            },
        })
        .unwrap();
    registry.register_pass(bump("Fold"), "Folds").unwrap();
    registry.register_pass(idle("Dce", 0), "Removes").unwrap();
    registry.register_pipeline("O0", "", "Nothing").unwrap();
    registry.register_pipeline("O1", "Fold,Dce", "A little").unwrap();
    registry.register_pipeline("O2", "O1,fixpoint<2>(Fold,O1)", "More").unwrap();
    registry.register_pipeline("tidy", PipelineText::with_options(TIDY_OPTIONS, tidy), "As often as needed").unwrap();
    registry.register_pipeline("broken", "Fold,Flod", "Names what is not there").unwrap();
    registry.register_pipeline("outer", "Fold,broken", "Names what is broken").unwrap();
    registry.register_pipeline("loop1", "Dce,loop2", "").unwrap();
    registry.register_pipeline("loop2", "fixpoint<2>(loop1)", "").unwrap();
    registry
}

fn error(text: &str) -> PipelineError {
    parse_pipeline(&registry(), text).unwrap_err()
}

#[test]
fn pipelines_print_as_they_are_read() {
    for text in [
        "",
        "Fold",
        "Fold,Dce,Cse",
        "Cse{commutative=true}",
        "Cse{commutative=true,limit=3}",
        "Cse{entry=\"a, \\\"b\\\" \\\\ c\"}",
        "Cse{entry=@main}",
        "fixpoint<4>(Fold,Dce),Cse",
        "fixpoint<1>()",
        "fixpoint<2>(Fold,fixpoint<3>(Cse{limit=0}),Dce)",
    ] {
        let once = parse_pipeline(&registry(), text).unwrap().to_string();
        assert_eq!(once, text);
    }
}

#[test]
fn blanks_defaults_and_names_of_pipelines_go() {
    for (text, printed) in [
        ("  Fold ,\n\tDce  ", "Fold,Dce"),
        ("Cse { }", "Cse"),
        ("Cse{ limit = 3 , commutative = true }", "Cse{commutative=true,limit=3}"),
        ("Cse{commutative=false,limit=10}", "Cse"),
        ("Cse{limit=1_0_0}", "Cse{limit=100}"),
        ("Cse{entry=\"plain\"}", "Cse{entry=plain}"),
        ("fixpoint < 4 > ( Fold )", "fixpoint<4>(Fold)"),
        ("O0", ""),
        ("O1", "Fold,Dce"),
        ("O0,O1,O0", "Fold,Dce"),
        (" O2 ", "Fold,Dce,fixpoint<2>(Fold,Fold,Dce)"),
    ] {
        let printed_now = parse_pipeline(&registry(), text).unwrap().to_string();
        assert_eq!(printed_now, printed, "{text}");
        assert_eq!(parse_pipeline(&registry(), printed).unwrap().to_string(), printed);
    }
}

#[test]
fn pipelines_run_as_they_are_written() {
    let mut module = empty_module();
    let cx = PassContext::with_registry(Arc::new(registry()));
    parse_pipeline(cx.registry(), "O2").unwrap().apply(&mut module, &cx).unwrap();
    assert_eq!(bumps(&module), 1 + 2 * 2);
    parse_pipeline(cx.registry(), "Cse{limit=42}").unwrap().apply(&mut module, &cx).unwrap();
    assert_eq!(bumps(&module), 42);
}

#[test]
fn a_pipeline_goes_by_its_name() {
    let name = |text| parse_pipeline(&registry(), text).unwrap().info().clone();
    assert_eq!(name("O1"), PassInfo::new("O1", 0));
    assert_eq!(name("Fold"), PassInfo::new("pipeline", 0));
    assert_eq!(parse_pipeline(&registry(), "Fold,O1").unwrap().passes()[1].info().name, "O1");
}

#[test]
fn named_pipelines_have_options() {
    for (text, printed) in [
        ("tidy", "fixpoint<1>(Dce)"),
        ("tidy { }", "fixpoint<1>(Dce)"),
        ("tidy{rounds=3}", "fixpoint<3>(Dce)"),
        (" tidy { first = Fold , rounds = 2 } ", "Fold,fixpoint<2>(Dce)"),
        ("tidy{first=O1},Cse,tidy", "Fold,Dce,fixpoint<1>(Dce),Cse,fixpoint<1>(Dce)"),
        ("fixpoint<4>(tidy{rounds=2})", "fixpoint<4>(fixpoint<2>(Dce))"),
        ("O1{}", "Fold,Dce"),
    ] {
        let printed_now = parse_pipeline(&registry(), text).unwrap().to_string();
        assert_eq!(printed_now, printed, "{text}");
        assert_eq!(parse_pipeline(&registry(), printed).unwrap().to_string(), printed);
    }
    let name = |text| parse_pipeline(&registry(), text).unwrap().info().name.clone();
    assert_eq!(name("tidy{rounds=3}"), "tidy");
    assert_eq!(name("tidy{rounds=3},Dce"), "pipeline");
    let registry = registry();
    let tidy = registry.pipelines().iter().find(|p| p.name == "tidy").unwrap();
    assert_eq!((tidy.text.as_str(), tidy.options), ("fixpoint<1>(Dce)", TIDY_OPTIONS));
}

#[test]
fn errors_in_options_of_pipelines_point_at_the_column() {
    for (text, column, message) in [
        ("Dce,tidy{", 10, "expected the name of an option, found the end"),
        ("Dce,tidy{rounds=10}", 17, "`rounds` takes a whole number from 0 to 9, not `10`"),
        ("Dce,tidy{rounds=1,rounds=2}", 19, "`rounds` is given more than once"),
        (
            "Dce,tidy{round=1}",
            10,
            "unknown option of tidy `round`; did you mean `rounds`? (known: entry, first, rounds)",
        ),
        ("Dce,tidy{first=Flod}", 16, "unknown value of `first` `Flod`; did you mean `Fold`?"),
        ("Dce,tidy{entry=nowhere}", 5, "pipeline `tidy` cannot be made: `entry` takes a function, not `nowhere`"),
        ("Dce,O1{rounds=1}", 8, "unknown option of O1 `rounds` (there are none)"),
        ("tidy{rounds=1} Dce", 16, "expected `,` or the end, found `D`"),
    ] {
        let e = error(text);
        assert_eq!(e.column, column, "{text}: {e}");
        assert!(e.message.starts_with(message), "{text}: {e}");
        assert!(e.through.is_empty() && e.text == text, "{text}: {e}");
    }
    // A text that the options lead to is wrong.
    let e = error("Dce,tidy{rounds=0}");
    assert_eq!((e.column, &*e.through, e.text.as_str()), (10, &["tidy".to_string()][..], "fixpoint<0>(Dce)"));
}

#[test]
fn pipelines_declare_options_that_can_be_written() {
    const FALSE_DEFAULT: &[OptionDef] = &[OptionDef::one_of("first", &["a", "b"], "c", "")];
    const BAD_NAME: &[OptionDef] = &[OptionDef::flag("a b", "")];
    const TWICE: &[OptionDef] = &[OptionDef::flag("a", ""), OptionDef::flag("a", "")];
    const NOWHERE: &[OptionDef] = &[
        OptionDef::int("rounds", 0, 9, 1, ""),
        OptionDef::one_of("first", &["nothing"], "nothing", ""),
        OptionDef::text("entry", "nowhere", ""),
    ];
    let mut registry = PassRegistry::new();
    for (options, message) in [
        (FALSE_DEFAULT, "the default of `first` is not a value that it takes"),
        (BAD_NAME, "`a b` cannot be the name of a pass, pipeline, property, option or config key"),
        (TWICE, "there is a option `wrong.a` already"),
    ] {
        let text = PipelineText::with_options(options, |_| Ok(String::new()));
        assert_eq!(registry.register_pipeline("wrong", text, "").unwrap_err().to_string(), message);
    }
    let error = registry.register_pipeline("wrong", PipelineText::with_options(NOWHERE, tidy), "").unwrap_err();
    assert_eq!(error.to_string(), "pipeline `wrong` cannot be made: `entry` takes a function, not `nowhere`");
    assert!(registry.pipelines().is_empty() && !registry.contains("wrong"));
}

#[test]
fn errors_point_at_the_column() {
    for (text, column, message) in [
        (",Fold", 1, "expected the name of a pass, found `,`"),
        ("Fold,", 6, "expected the name of a pass, found the end"),
        ("Fold,,Dce", 6, "expected the name of a pass, found `,`"),
        ("Fold Dce", 6, "expected `,` or the end, found `D`"),
        ("Fold)", 5, "expected `,` or the end, found `)`"),
        ("Fold,)", 6, "expected the name of a pass, found `)`"),
        ("(Fold)", 1, "expected the name of a pass, found `(`"),
        ("1", 1, "expected the name of a pass, found `1`"),
        ("Dce{limit=1}", 5, "unknown option of Dce `limit` (there are none)"),
        ("Cse{", 5, "expected the name of an option, found the end"),
        ("Cse{limit}", 10, "expected `=`, found `}`"),
        ("Cse{limit=}", 11, "expected a value, found `}`"),
        ("Cse{limit=1 commutative=true}", 13, "expected `,` or `}`, found `c`"),
        ("Cse{limit=1,limit=2}", 13, "`limit` is given more than once"),
        ("Cse{limit=101}", 11, "`limit` takes a whole number from 0 to 100, not `101`"),
        ("Cse{ commutative = maybe}", 20, "`commutative` takes `true` or `false`, not `maybe`"),
        ("Cse{entry=\"x}", 11, "the text is not closed with `\"`"),
        ("fixpoint(Fold)", 9, "expected `<` and a number of rounds, found `(`"),
        ("fixpoint<0>(Fold)", 10, "a number of rounds is a whole number from 1, not `0`"),
        ("fixpoint<many>(Fold)", 10, "a number of rounds is a whole number from 1, not `many`"),
        ("fixpoint<99999999999>(Fold)", 10, "a number of rounds is a whole number from 1, not `99999999999`"),
        ("fixpoint<2", 11, "expected `>`, found the end"),
        ("fixpoint<2>Fold", 12, "expected `(`, found `F`"),
        ("Fold,fixpoint<2>(Fold", 22, "the `(` of column 17 is not closed"),
        ("fixpoint<2>(Fold,)", 18, "expected the name of a pass, found `)`"),
        ("fixpoint<2>(Fold Dce)", 18, "expected `,` or `)`, found `D`"),
        ("é,Fold", 1, "unknown pass or pipeline `é`"),
        ("Fold,Cse{limit=0,commutative=true}", 6, "pass `Cse` cannot be made: `commutative` wants a limit"),
    ] {
        let e = error(text);
        assert_eq!(e.column, column, "{text}: {e}");
        assert!(e.message.starts_with(message), "{text}: {e}");
    }
}

#[test]
fn misspelt_names_are_told() {
    let e = error("Dce,Flod");
    assert_eq!((e.column, e.suggestion.as_deref()), (5, Some("Fold")));
    assert!(
        e.to_string()
            .starts_with("column 5: unknown pass or pipeline `Flod`; did you mean `Fold`? (known: Cse, Dce, Fold,")
    );
    assert_eq!(e.marked(), "Dce,Flod\n    ^");
    let e = error("Dce,Cse{comutative=true}");
    assert_eq!((e.column, e.suggestion.as_deref()), (9, Some("commutative")));
    for misspelt in ["fixpont<4>(Dce)", "Fixpoint<4>(Dce)", "fixpiont"] {
        assert_eq!(error(misspelt).suggestion.as_deref(), Some("fixpoint"), "{misspelt}");
    }
}

#[test]
fn errors_in_named_pipelines_say_how_they_were_reached() {
    let e = error("Dce,outer");
    assert_eq!(
        (e.column, e.through.as_slice(), e.text.as_str()),
        (6, &["outer".into(), "broken".into()][..], "Fold,Flod")
    );
    assert!(e.to_string().starts_with("in pipeline `outer`: in pipeline `broken`: column 6: unknown pass"), "{e}");
    assert_eq!(error("loop1").message, "pipelines name each other: loop1 -> loop2 -> loop1");
    assert_eq!(error("Dce,loop2").message, "pipelines name each other: loop2 -> loop1 -> loop2");
}

#[test]
fn nesting_is_bounded() {
    let nested = |n: usize| format!("{}Fold{}", "fixpoint<1>(".repeat(n), ")".repeat(n));
    let deepest = nested(MAX_NESTING - 1);
    let pipeline = parse_pipeline(&registry(), &deepest).unwrap();
    assert_eq!(pipeline.to_string(), deepest);
    let mut module = empty_module();
    pipeline.apply(&mut module, &PassContext::new()).unwrap();
    assert_eq!(bumps(&module), 1);
    assert_eq!(error(&nested(MAX_NESTING)).message, "pipelines nest at most 64 deep");
    assert_eq!(error(&nested(1_000_000)).message, "pipelines nest at most 64 deep");
}

#[test]
fn long_pipelines_are_read_and_marked() {
    let text = vec!["Fold"; 100_000].join(",");
    assert_eq!(parse_pipeline(&registry(), &text).unwrap().passes().len(), 100_000);
    let e = error(&format!("{text},Flod,{text}"));
    let marked = e.marked();
    let (line, mark) = marked.split_once('\n').unwrap();
    assert!(line.len() <= 80);
    assert_eq!(&line[mark.len() - 1..][..4], "Flod");
}

#[test]
fn names_are_registered_once() {
    let mut registry = registry();
    let message = |e: RegistryError| e.to_string();
    assert_eq!(message(registry.register_pass(idle("Fold", 0), "").unwrap_err()), "there is a pass `Fold` already");
    assert_eq!(message(registry.register_pass(idle("O1", 0), "").unwrap_err()), "there is a pipeline `O1` already");
    assert_eq!(message(registry.register_pipeline("Fold", "", "").unwrap_err()), "there is a pass `Fold` already");
    for name in ["", "fixpoint", "a b", "1st", "a,b"] {
        assert_eq!(registry.register_pipeline(name, "", "").unwrap_err(), RegistryError::Name(name.to_string()));
    }
    assert_eq!(registry.passes().iter().map(|p| p.name()).collect::<Vec<_>>(), ["Cse", "Fold", "Dce"]);
}

#[test]
fn a_maker_of_another_name_is_told() {
    let mut registry = PassRegistry::new();
    let entry = PassEntry {
        name: "One",
        doc: "",
        opt_level: 0,
        options: &[],
        configs: &[],
        make: |_| Ok(Arc::new(idle("Other", 0))),
    };
    registry.register(entry).unwrap();
    assert_eq!(
        parse_pipeline(&registry, "One").unwrap_err().message,
        "pass `One` cannot be made: its constructor made a pass called `Other`"
    );
}

/// Returns a registry with a pass that has options of every kind that are not single words.
fn with_lists() -> PassRegistry {
    let mut registry = PassRegistry::new();
    anfora_manager::register_pass! {
        in registry;
        /// Shows what it was given
        ModulePass("Show", 0);
        options {
            /// a part
            share: f64 [0.0..=1.0] = 0.5,
            /// any number
            any: f64 = -1.5,
            /// places
            axes: Vec<i64> [0..=7] = &[0, 1],
            /// names
            names: Vec<String> = &["main"],
            /// a text
            header: String = "",
        }
        run {
            let shown = format!("{share:?} {any:?} {axes:?} {names:?} {header:?}");
            move |_module, cx| {
                cx.remark(anfora_ir::Diagnostic::remark(shown.clone()));
                Ok(())
            }
        }
    }
    .unwrap();
    registry
}

#[test]
fn numbers_and_lists_are_options() {
    let registry = with_lists();
    let shown = |pipeline: &str| {
        let pipeline = parse_pipeline(&registry, pipeline).unwrap_or_else(|e| panic!("{e}\n{}", e.marked()));
        let cx = PassContext::new();
        pipeline.apply(&mut empty_module(), &cx).unwrap();
        (pipeline.to_string(), cx.take_remarks().remove(0).diagnostic.message)
    };
    let defaults = r#"0.5 -1.5 [0, 1] ["main"] """#;
    assert_eq!(shown("Show"), ("Show".to_string(), defaults.to_string()));
    assert_eq!(shown("Show{axes=[0,1],names=[main],share=0.50}").0, "Show");
    let all = r#"Show { names = [ "a b" , c, "]" ], axes=[], any = 1e-9, share=1, header="[x]" }"#;
    let printed = r#"Show{share=1.0,any=1e-9,axes=[],names=["a b",c,"]"],header="[x]"}"#;
    let values = r#"1.0 1e-9 [] ["a b", "c", "]"] "[x]""#;
    assert_eq!(shown(all), (printed.to_string(), values.to_string()));
    assert_eq!(shown(printed), (printed.to_string(), values.to_string()));
}

#[test]
fn wrong_numbers_and_lists_point_at_the_column() {
    let registry = with_lists();
    let error = |text: &str| {
        let error = parse_pipeline(&registry, text).unwrap_err();
        (error.column, error.message)
    };
    let (column, message) = error("Show{share=1.5}");
    assert_eq!((column, &*message), (12, "`share` takes a number from 0.0 to 1.0, not `1.5`"));
    let (column, message) = error("Show{axes=[1,9]}");
    assert_eq!(
        (column, &*message),
        (11, "`axes` takes a list of whole numbers from 0 to 7 (such as `[1,2]`), not `9`")
    );
    let (column, message) = error("Show{axes=1}");
    assert_eq!((column, message.ends_with("not `1`")), (11, true));
    let (column, message) = error("Show{axes=[1");
    assert_eq!((column, &*message), (13, "expected `,` or `]`, found the end"));
    let (column, message) = error("Show{axes=[1,]}");
    assert_eq!((column, &*message), (14, "expected a value, found `]`"));
    let (column, message) = error("Show{header=[a]}");
    assert_eq!((column, &*message), (13, "`header` takes a text, not `[a]`"));
    let (column, message) = error("Show{axis=[1]}");
    assert_eq!((column, message.starts_with("unknown option of Show `axis`; did you mean `axes`?")), (6, true));
}

#[test]
fn whatever_options_are_printed_as_is_read_as_the_same() {
    let registry = with_lists();
    let defs = registry.passes()[0].options();
    let mut random = fastrand::Rng::with_seed(3);
    let letters: Vec<char> = "ab9 ,\"\\[]{}=.\n".chars().collect();
    for _ in 0..2000 {
        let mut text =
            || -> String { (0..random.usize(..6)).map(|_| letters[random.usize(..letters.len())]).collect() };
        let (header, names) = (text(), (0..3).map(|_| text()).collect::<Vec<String>>());
        let mut options = anfora_manager::Options::new("Show", defs);
        options.set("header", header).unwrap();
        options.set("names", names).unwrap();
        options.set("axes", (0..random.usize(..4)).map(|_| random.i64(0..8)).collect::<Vec<i64>>()).unwrap();
        options.set("share", random.f64()).unwrap();
        options.set("any", random.i64(..) as f64 / 3.0).unwrap();
        let pipeline = format!("Show{}", options.text());
        let read = parse_pipeline(&registry, &pipeline).unwrap_or_else(|e| panic!("{e}\n{}", e.marked()));
        assert_eq!(read.to_string(), pipeline);
    }
}
