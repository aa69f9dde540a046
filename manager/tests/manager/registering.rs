//! `register_pass!`: passes by name, with typed options and their settings.

use std::str::FromStr;
use std::sync::Arc;

use anfora_manager::{ConfigDef, MakeError, PassContext, PassRegistry, RegistryError, parse_pipeline, register_pass};

use crate::support::module;

const DEPTH: ConfigDef = ConfigDef::int("Show.depth", 0, 9, 3, "how deep it looks");
const SHARED: ConfigDef = ConfigDef::limit("shared.limit", None, "what several passes read");

#[derive(Debug)]
enum Order {
    Exact,
    Any,
}

impl FromStr for Order {
    type Err = String;

    fn from_str(word: &str) -> Result<Order, String> {
        match word {
            "exact" => Ok(Order::Exact),
            "any" => Ok(Order::Any),
            _ => Err(format!("{word} is no order")),
        }
    }
}

register_pass! {
    /// Shows its options
    ///
    /// And says more in the documentation.
    pub(crate) SHOW = ModulePass("Show", 2).requiring(["Other"]);
    options {
        /// a flag
        flag: bool = true,
        /// a range
        rounds: u32 [1..=100] = 4,
        /// any number
        signed: i64 = -1,
        /// a size
        size: usize [0..=8] = 2,
        /// a text
        target: String = "cpu",
        /// bytes
        limit: Option<u64> = Some(16 << 10),
        /// words
        order: Order ["exact", "any"] = "exact",
        /// a word that the type does not know
        odd: Order ["exact", "none"] = "exact",
    }
    configs { DEPTH, SHARED }
    run {
        if target == "nowhere" {
            return Err("there is no such target".into());
        }
        move |_module, cx| {
            let depth: u32 = cx.config_of(&DEPTH)?;
            let text = format!("{flag} {rounds} {signed} {size} {target} {limit:?} {order:?} {odd:?} {depth}");
            cx.remark(anfora_ir::Diagnostic::note(text));
            Ok(())
        }
    }
}

register_pass! {
    /// Is what the other depends on
    OTHER = FunctionPass("Other", 0);
    configs { SHARED }
    run |_func, _module, _cx| Ok(())
}

fn registry() -> PassRegistry {
    let mut registry = PassRegistry::new();
    registry.register(SHOW).unwrap();
    registry.register(OTHER).unwrap();
    registry
}

/// Returns what the pass shows when a pipeline runs it.
fn shown(pipeline: &str) -> String {
    let registry = Arc::new(registry());
    let passes = parse_pipeline(&registry, pipeline).unwrap();
    assert_eq!(parse_pipeline(&registry, &passes.to_string()).unwrap().to_string(), passes.to_string());
    let cx = PassContext::builder().registry(registry).config_text("Show.depth=7").build().unwrap();
    anfora_manager::Pass::apply(&passes, &mut module(), &cx).unwrap();
    cx.take_remarks().pop().unwrap().diagnostic.message
}

#[test]
fn options_come_with_their_types() {
    assert_eq!(shown("Show"), "true 4 -1 2 cpu Some(16384) Exact Exact 7");
    let all = "Show{flag=off,rounds=1_00,signed=5,size=8,target=\"two words\",limit=unlimited,order=any}";
    assert_eq!(shown(all), "false 100 5 8 two words None Any Exact 7");
}

#[test]
fn what_is_declared_is_listed() {
    let registry = registry();
    let show = &registry.passes()[0];
    assert_eq!((show.name(), show.doc(), show.opt_level()), ("Show", "Shows its options", 2));
    let options: Vec<String> =
        show.options().iter().map(|o| format!("{}={} ({}): {}", o.key, o.default, o.kind, o.doc)).collect();
    assert_eq!(
        options,
        [
            "flag=true (`true` or `false`): a flag",
            "rounds=4 (a whole number from 1 to 100): a range",
            "signed=-1 (a whole number from -9223372036854775808): any number",
            "size=2 (a whole number from 0 to 8): a size",
            "target=cpu (a text): a text",
            "limit=16384 (a whole number, also as `16KiB`, or `unlimited`): bytes",
            "order=exact (one of exact, any): words",
            "odd=exact (one of exact, none): a word that the type does not know",
        ]
    );
    let keys: Vec<&str> = registry.configs().iter().map(|c| c.key).collect();
    assert_eq!(keys, ["Show.depth", "shared.limit"]);
    assert_eq!(registry.make("Show").unwrap().info().required, ["Other"]);
}

register_pass! {
    /// Has options that are words of the language
    WORDS = ModulePass("Words", 0);
    options {
        /// a text
        r#type: String = "a",
        /// a word
        r#match: Order ["exact", "any"] = "exact",
    }
    run move |_module, cx| {
        cx.remark(anfora_ir::Diagnostic::note(format!("{} {:?}", r#type, r#match)));
        Ok(())
    }
}

#[test]
fn options_may_be_called_as_words_of_the_language() {
    let mut registry = PassRegistry::new();
    registry.register(WORDS).unwrap();
    let cx = PassContext::new();
    let pipeline = parse_pipeline(&registry, "Words{match=any,type=b}").unwrap();
    assert_eq!(pipeline.to_string(), "Words{type=b,match=any}");
    anfora_manager::Pass::apply(&pipeline, &mut module(), &cx).unwrap();
    assert_eq!(cx.take_remarks()[0].diagnostic.message, "b Any");
}

#[test]
fn what_does_not_fit_is_said() {
    let registry = registry();
    let message = |pipeline: &str| parse_pipeline(&registry, pipeline).unwrap_err().to_string();
    assert_eq!(message("Show{rounds=0}"), "column 13: `rounds` takes a whole number from 1 to 100, not `0`");
    assert!(message("Show{ronds=1}").contains("did you mean `rounds`?"), "{}", message("Show{ronds=1}"));
    assert!(message("Show{order=exat}").contains("did you mean `exact`?"));
    assert!(message("Shwo").contains("did you mean `Show`?"));
    assert!(message("Show{target=nowhere}").contains("there is no such target"));
    assert!(message("Show{odd=none}").contains("`odd` takes a word of its type (none is no order), not `none`"));
    assert!(matches!(registry.make("Sho"), Err(MakeError::Unknown(e)) if e.suggestion.as_deref() == Some("Show")));
}

#[test]
fn a_pass_and_its_settings_are_registered_together_or_not_at_all() {
    let mut taken = PassRegistry::new();
    taken.register_config(ConfigDef::flag("shared.limit", "another of that key")).unwrap();
    let error = taken.register(SHOW).unwrap_err();
    assert_eq!(error, RegistryError::Duplicate { what: "config key", name: "shared.limit".into() });
    assert!(taken.passes().is_empty() && taken.configs().len() == 1);
    assert!(taken.config("Show.depth").is_err());

    let mut twice = registry();
    twice.register(SHOW).unwrap_err();
    assert_eq!((twice.passes().len(), twice.configs().len()), (2, 2));

    let mut at_once = PassRegistry::new();
    let registered = register_pass! {
        in at_once;
        /// Is registered where it stands
        FunctionPass("Here", 1);
        options {
            /// how often
            n: u64 = 2,
        }
        configs { DEPTH }
        run move |func, _module, cx| {
            cx.count("n", n + func.function.body.params().len() as u64);
            Ok(())
        }
    };
    assert_eq!(registered, Ok(()));
    assert_eq!(parse_pipeline(&at_once, "Here{n=3}").unwrap().to_string(), "Here{n=3}");
    assert_eq!(at_once.configs().len(), 1);
}
