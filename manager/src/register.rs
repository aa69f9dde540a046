//! The macro that declares a pass with its name, options and settings.

/// Declares a pass under the name that pipelines use, with typed options, the settings that it
/// reads, and a line of documentation.
///
/// The macro makes a constant [`PassEntry`](crate::PassEntry), which
/// [`PassRegistry::register`](crate::PassRegistry::register) takes:
///
/// ```
/// use std::fmt;
/// use std::str::FromStr;
/// use std::sync::Arc;
///
/// use anfora_manager::{ConfigDef, PassContext, PassRegistry, parse_pipeline, register_pass};
///
/// /// Bodies of more nodes are large.
/// const LIMIT: ConfigDef = ConfigDef::int(
///     "CountNodes.limit",
///     1,
///     1_000_000,
///     1000,
///     "bodies of more nodes are large",
/// );
///
/// register_pass! {
///     /// Counts the bodies that are too large
///     pub COUNT_NODES = FunctionPass("CountNodes", 1);
///     options {
///         /// what becomes of a body that is too large
///         verdict: Verdict ["count", "fail"] = "count",
///         /// bodies with fewer parameters do not count
///         min_params: u32 [0..=64] = 0,
///     }
///     configs { LIMIT }
///     run move |func, _module, cx| {
///         let body = &func.function.body;
///         if body.len() > cx.config_of(&LIMIT)? && body.params().len() >= min_params as usize {
///             match verdict {
///                 Verdict::Count => cx.count("too large", 1),
///                 Verdict::Fail => return Err("the body is too large".into()),
///             }
///         }
///         Ok(())
///     }
/// }
///
/// enum Verdict {
///     Count,
///     Fail,
/// }
///
/// impl FromStr for Verdict {
///     type Err = fmt::Error;
///
///     fn from_str(word: &str) -> Result<Verdict, fmt::Error> {
///         match word {
///             "count" => Ok(Verdict::Count),
///             "fail" => Ok(Verdict::Fail),
///             _ => Err(fmt::Error),
///         }
///     }
/// }
///
/// let mut registry = PassRegistry::new();
/// registry.register(COUNT_NODES)?;
/// let pipeline = parse_pipeline(&registry, "CountNodes{min_params=2,verdict=fail}")?;
/// assert_eq!(pipeline.to_string(), "CountNodes{verdict=fail,min_params=2}");
/// assert_eq!(registry.configs()[0].key, "CountNodes.limit");
/// let misspelt = parse_pipeline(&registry, "CountNodes{verdict=fial}").unwrap_err();
/// assert_eq!(misspelt.suggestion.as_deref(), Some("fail"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// - The first line of the doc comment is the line that lists show.
/// - `FunctionPass("CountNodes", 1)` names the kind of the pass
///   ([`FunctionPass`](crate::FunctionPass), [`DataflowBlockPass`](crate::DataflowBlockPass) or
///   [`ModulePass`](crate::ModulePass)), its name and its level. Calls of its methods may follow,
///   such as `.requiring(["ToANormalForm"])`.
/// - `options { … }` is optional. Each option has a doc comment, a type, and a default:
///
///   | option | its values |
///   |---|---|
///   | `strict: bool = false` | `true`, `false` |
///   | `rounds: u32 [1..=100] = 4` | whole numbers in a range |
///   | `share: f64 [0.0..=1.0] = 0.5` | numbers in a range; without a range, all finite ones |
///   | `target: String = "cpu"` | any text |
///   | `axes: Vec<i64> [0..=7] = &[0, 1]` | lists of whole numbers (`[0,1]`), each in a range |
///   | `names: Vec<String> = &[]` | lists of texts (`[a,"b c"]`) |
///   | `limit: Option<u64> = Some(16 << 10)` | a whole number or `16KiB`, or `unlimited` (`None`) |
///   | `sizes: Vec<(String, i64)> [0..=9] = []` | numbers by name, each as an option: `{a=1,b=2}` |
///   | `order: Order ["exact", "any"] = "exact"` | one of the words |
///
///   Whole numbers may also be `u64`, `usize` or `i64`. Without a range, they take all values of
///   the type up to `i64::MAX`. The type of an option of words reads them by
///   [`FromStr`](std::str::FromStr). A default that its option does not take is a compile error.
///   An option whose name is a keyword, `r#type`, is `type` in pipelines.
/// - `configs { … }` is optional. It names the constants of the settings
///   ([`ConfigDef`](crate::ConfigDef)) that the pass reads, which are registered with it. Several
///   passes may name the same setting.
/// - After `run` comes the closure, or an expression that makes it. The expression sees the options
///   under their names, as values of their types. It may end with `?` or `return Err(…)`: the pass
///   is not made then.
///
/// In a function, `register_pass!(in registry; …)` registers the pass at once, without making a
/// constant. It returns the result of [`PassRegistry::register`](crate::PassRegistry::register):
///
/// ```
/// # use anfora_manager::{PassRegistry, register_pass};
/// let mut registry = PassRegistry::new();
/// register_pass! {
///     in registry;
///     /// Does nothing
///     ModulePass("Nothing", 0);
///     run |_module, _cx| Ok(())
/// }?;
/// assert!(registry.contains("Nothing"));
/// # Ok::<(), anfora_manager::RegistryError>(())
/// ```
///
/// Errors in the declaration do not compile:
///
/// ```compile_fail
/// # use anfora_manager::register_pass;
/// register_pass! {
///     /// Has a default that is not in the range
///     pub WRONG = ModulePass("Wrong", 0);
///     options {
///         /// how often
///         rounds: u32 [1..=100] = 0,
///     }
///     run |_module, _cx| Ok(())
/// }
/// ```
#[macro_export]
macro_rules! register_pass {
    (in $registry:expr; $(#[doc = $doc:literal])+ $kind:ident $($declaration:tt)*) => {{
        $crate::register_pass! { $(#[doc = $doc])+ ENTRY = $kind $($declaration)* }
        $registry.register(ENTRY)
    }};
    (
        #[doc = $doc:literal] $(#[doc = $more:literal])*
        $visibility:vis $entry:ident = $kind:ident($name:literal, $level:expr) $(.$method:ident$(::<$of:ty>)?($($argument:tt)*))*;
        $(options { $(
            #[doc = $option_doc:literal] $(#[doc = $option_more:literal])*
            $key:ident: $ty:ty $([$($allowed:tt)*])? = $default:expr
        ),* $(,)? })?
        $(configs { $($config:path),* $(,)? })?
        run $run:expr
    ) => {
        #[doc = $doc]
        $(#[doc = $more])*
        $visibility const $entry: $crate::PassEntry = $crate::PassEntry {
            name: $name,
            doc: $doc.trim_ascii(),
            opt_level: $level,
            options: &[$($(
                $crate::declare_option!($key, $default, $option_doc, $ty, [$($($allowed)*)?])
            ),*)?],
            configs: &[$($($config),*)?],
            make: |_options| {
                #[allow(unused_imports)]
                use $crate::Declare as _;
                $($(
                    let $key: $ty = $crate::read_declared_option!(_options, $key, [$($($allowed)*)?]);
                )*)?
                Ok(::std::sync::Arc::new(
                    $crate::$kind::new($name, $level, $run)$(.$method$(::<$of>)?($($argument)*))*
                ))
            },
        };
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! declare_option {
    ($key:ident, $default:expr, $doc:literal, $ty:ty, []) => {
        $crate::declare_option!($key, $default, $doc, $ty, kind <$crate::typed_option::Typed<$ty>>::KIND)
    };
    ($key:ident, $default:expr, $doc:literal, $ty:ty, [$($word:literal),+ $(,)?]) => {
        $crate::declare_option!($key, $default, $doc, String, kind $crate::ConfigKind::OneOf(&[$($word),+]))
    };
    ($key:ident, $default:expr, $doc:literal, $ty:ty, [$range:expr]) => {
        $crate::declare_option!($key, $default, $doc, $ty, kind <$crate::typed_option::Typed<$ty>>::within($range))
    };
    ($key:ident, $default:expr, $doc:literal, $ty:ty, kind $kind:expr) => {
        $crate::typed_option::declare(stringify!($key), $kind, <$crate::typed_option::Typed<$ty>>::value($default), $doc)
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! read_declared_option {
    ($options:ident, $key:ident, [$($word:literal),+ $(,)?]) => {
        $crate::typed_option::read_word($options, $crate::typed_option::option_key(stringify!($key)))?
    };
    ($options:ident, $key:ident, [$($range:expr)?]) => {
        $options.get($crate::typed_option::option_key(stringify!($key)))?
    };
}
