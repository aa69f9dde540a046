//! Typed settings: the configuration of a context and the options of a pass.

use std::borrow::Cow;
use std::fmt;

use rustc_hash::FxHashSet;

use crate::error::PassError;
use crate::names::{UnknownName, is_name};
use crate::scanner::{in_quotes, list_text, parse_list, quoted};

/// The values that a setting takes.
#[derive(Clone, PartialEq, Debug)]
pub enum ConfigKind {
    /// A whole number between two others, both included.
    Int {
        /// The least.
        min: i64,
        /// The greatest.
        max: i64,
    },
    /// A number between two others, both included.
    Float {
        /// The least.
        min: f64,
        /// The greatest.
        max: f64,
    },
    /// `true` or `false`.
    Bool,
    /// Any text.
    Str,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A whole number, also with a unit (`4096`, `16KiB`, `1MiB`, `2GiB`), or `unlimited`.
    Limit,
    /// A list of whole numbers (`[1,2]`), each between two others, both included.
    IntList {
        /// The least.
        min: i64,
        /// The greatest.
        max: i64,
    },
    /// Whole numbers, each between two others and under a name of its own: `n=4,m=8`. As an option
    /// of a pass, it takes all names that no other option has.
    Numbers {
        /// The least.
        min: i64,
        /// The greatest.
        max: i64,
    },
    /// A list of texts (`[a,"b c"]`), or of some of these words.
    TextList {
        /// The words; absent if any text is allowed.
        words: Option<&'static [&'static str]>,
    },
}

/// The value of a setting.
#[derive(Clone, PartialEq, Debug)]
pub enum ConfigValue {
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// True or false.
    Bool(bool),
    /// A text.
    Str(Cow<'static, str>),
    /// A number that something may not exceed; `None` is unlimited.
    Limit(Option<u64>),
    /// Whole numbers.
    IntList(Cow<'static, [i64]>),
    /// Texts.
    TextList(TextList),
    /// Whole numbers by name, in the order in which they are given.
    Numbers(Vec<(String, i64)>),
}

/// A list of texts as the value of a setting: a constant list, or a given one. Two lists are equal
/// if they have the same texts.
#[derive(Clone, Debug)]
pub enum TextList {
    /// The list of a declaration.
    Static(&'static [&'static str]),
    /// A given list.
    Owned(Vec<String>),
}

impl TextList {
    /// Returns the texts, in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let (fixed, given): (&[&str], &[String]) = match self {
            TextList::Static(texts) => (texts, &[]),
            TextList::Owned(texts) => (&[], texts),
        };
        fixed.iter().copied().chain(given.iter().map(String::as_str))
    }
}

impl PartialEq for TextList {
    fn eq(&self, other: &TextList) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for TextList {}

/// The declaration of a setting: its name, its kind, its default and a line of documentation.
#[derive(Clone, PartialEq, Debug)]
pub struct ConfigDef {
    /// The name, such as `FoldConstant.max_growth_bytes` in a context, or `commutative` for an
    /// option of a pass.
    pub key: &'static str,
    /// The values that the setting takes.
    pub kind: ConfigKind,
    /// The value if none is given.
    pub default: ConfigValue,
    /// A line of documentation.
    pub doc: &'static str,
}

/// An option of a pass or of a named pipeline, written `{key=value}` in pipelines.
pub type OptionDef = ConfigDef;

/// The reason why a setting cannot be set or read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConfigError {
    /// There is no setting of that name.
    #[error(transparent)]
    Unknown(#[from] UnknownName),
    /// The value does not fit.
    #[error("`{key}` takes {expected}, not {found}")]
    Value {
        /// The setting.
        key: String,
        /// The values that the setting takes.
        expected: String,
        /// The value that was given.
        found: String,
    },
    /// The text is not of the form `KEY=VALUE`.
    #[error("`{0}` is not of the form KEY=VALUE")]
    Form(String),
    /// The setting is given more than once.
    #[error("`{0}` is given more than once")]
    Twice(String),
    /// The setting was read as a type that its values do not have.
    #[error("`{key}` takes {kind}, and was read as {wanted}")]
    Read {
        /// The setting.
        key: String,
        /// The values that the setting takes.
        kind: String,
        /// The type that it was read as.
        wanted: &'static str,
    },
}

impl From<ConfigError> for PassError {
    fn from(error: ConfigError) -> PassError {
        PassError::new("the configuration cannot be read").with_cause(error)
    }
}

impl ConfigDef {
    /// Declares a whole number from `min` to `max`.
    ///
    /// Cost: linear in the text.
    pub const fn int(key: &'static str, min: i64, max: i64, default: i64, doc: &'static str) -> ConfigDef {
        ConfigDef { key, kind: ConfigKind::Int { min, max }, default: ConfigValue::Int(default), doc }
    }

    /// Declares a number from `min` to `max`.
    ///
    /// Cost: linear in the text.
    pub const fn float(key: &'static str, min: f64, max: f64, default: f64, doc: &'static str) -> ConfigDef {
        ConfigDef { key, kind: ConfigKind::Float { min, max }, default: ConfigValue::Float(default), doc }
    }

    /// Declares a list of whole numbers, each from `min` to `max`.
    ///
    /// Cost: linear in the text.
    pub const fn int_list(
        key: &'static str,
        min: i64,
        max: i64,
        default: &'static [i64],
        doc: &'static str,
    ) -> ConfigDef {
        let default = ConfigValue::IntList(Cow::Borrowed(default));
        ConfigDef { key, kind: ConfigKind::IntList { min, max }, default, doc }
    }

    /// Declares a list of any texts.
    ///
    /// Cost: linear in the text.
    pub const fn text_list(key: &'static str, default: &'static [&'static str], doc: &'static str) -> ConfigDef {
        let default = ConfigValue::TextList(TextList::Static(default));
        ConfigDef { key, kind: ConfigKind::TextList { words: None }, default, doc }
    }

    /// Declares a flag, `true` or `false`; its default is false.
    ///
    /// Cost: linear in the text.
    pub const fn flag(key: &'static str, doc: &'static str) -> ConfigDef {
        ConfigDef { key, kind: ConfigKind::Bool, default: ConfigValue::Bool(false), doc }
    }

    /// Declares any text.
    ///
    /// Cost: linear in the text.
    pub const fn text(key: &'static str, default: &'static str, doc: &'static str) -> ConfigDef {
        ConfigDef { key, kind: ConfigKind::Str, default: ConfigValue::Str(Cow::Borrowed(default)), doc }
    }

    /// Declares one of some words.
    ///
    /// Cost: one entry.
    pub const fn one_of(
        key: &'static str,
        words: &'static [&'static str],
        default: &'static str,
        doc: &'static str,
    ) -> ConfigDef {
        ConfigDef { key, kind: ConfigKind::OneOf(words), default: ConfigValue::Str(Cow::Borrowed(default)), doc }
    }

    /// Declares a number that something may not exceed, or `unlimited` (`None`).
    ///
    /// Cost: linear in the text.
    pub const fn limit(key: &'static str, default: Option<u64>, doc: &'static str) -> ConfigDef {
        ConfigDef { key, kind: ConfigKind::Limit, default: ConfigValue::Limit(default), doc }
    }

    /// Parses a value.
    ///
    /// Cost: linear in the text.
    ///
    /// # Errors
    /// If the text is not a value that the setting takes.
    pub fn parse(&self, text: &str) -> Result<ConfigValue, ConfigError> {
        let value = match &self.kind {
            ConfigKind::Int { .. } => parse_int(text).map(ConfigValue::Int),
            ConfigKind::Bool => match text {
                "true" | "on" | "1" => Some(ConfigValue::Bool(true)),
                "false" | "off" | "0" => Some(ConfigValue::Bool(false)),
                _ => None,
            },
            ConfigKind::Str | ConfigKind::OneOf(_) => Some(ConfigValue::Str(Cow::Owned(text.to_string()))),
            ConfigKind::Limit => parse_limit(text).map(ConfigValue::Limit),
            ConfigKind::Float { .. } => text.replace('_', "").parse().ok().map(ConfigValue::Float),
            ConfigKind::IntList { .. } => {
                let numbers = parse_list(text).and_then(|list| list.iter().map(|n| parse_int(n)).collect());
                numbers.map(|numbers: Vec<i64>| ConfigValue::IntList(numbers.into()))
            }
            ConfigKind::TextList { .. } => parse_list(text).map(|texts| ConfigValue::TextList(TextList::Owned(texts))),
            ConfigKind::Numbers { .. } => parse_numbers(text).map(ConfigValue::Numbers),
        };
        value.ok_or_else(|| self.mismatch(text)).and_then(|value| self.check(value))
    }

    /// Returns the value, converted to the kind of the setting. A whole number is accepted for a
    /// limit, and for a number that need not be whole.
    ///
    /// # Errors
    /// If the setting does not take the value, or a name occurs twice in numbers by name.
    pub fn check(&self, value: ConfigValue) -> Result<ConfigValue, ConfigError> {
        if let ConfigValue::Numbers(numbers) = &value {
            let mut names = FxHashSet::default();
            if let Some((twice, _)) = numbers.iter().find(|(name, _)| !names.insert(name.as_str())) {
                return Err(ConfigError::Twice(twice.clone()));
            }
        }
        let wrong = match (&self.kind, &value) {
            (&ConfigKind::Int { min, max }, &ConfigValue::Int(n)) if (min..=max).contains(&n) => None,
            (&ConfigKind::Float { min, max }, &ConfigValue::Float(x)) if (min..=max).contains(&x) => {
                // Negative zero becomes zero, so that the printed text is read as the same value.
                return Ok(ConfigValue::Float(x + 0.0));
            }
            (&ConfigKind::Float { min, max }, &ConfigValue::Int(n)) if (min..=max).contains(&(n as f64)) => {
                return Ok(ConfigValue::Float(n as f64));
            }
            (ConfigKind::Limit, &ConfigValue::Int(n)) if n >= 0 => return Ok(ConfigValue::Limit(Some(n as u64))),
            (ConfigKind::Bool, ConfigValue::Bool(_))
            | (ConfigKind::Str, ConfigValue::Str(_))
            | (ConfigKind::Limit, ConfigValue::Limit(_))
            | (ConfigKind::TextList { words: None }, ConfigValue::TextList(_)) => None,
            (&ConfigKind::IntList { min, max }, ConfigValue::IntList(list)) => {
                list.iter().find(|n| !(min..=max).contains(*n)).map(i64::to_string)
            }
            (&ConfigKind::Numbers { min, max }, ConfigValue::Numbers(numbers)) => {
                numbers.iter().any(|(_, n)| !(min..=max).contains(n)).then(|| value.to_string())
            }
            (ConfigKind::OneOf(words), ConfigValue::Str(s)) => {
                self.check_word(words, s)?;
                None
            }
            (ConfigKind::TextList { words: Some(words) }, ConfigValue::TextList(list)) => {
                list.iter().try_for_each(|text| self.check_word(words, text))?;
                None
            }
            _ => Some(value.to_string()),
        };
        wrong.map_or(Ok(value), |wrong| Err(self.mismatch(&wrong)))
    }

    fn check_word(&self, words: &[&str], text: &str) -> Result<(), ConfigError> {
        if words.contains(&text) {
            return Ok(());
        }
        Err(UnknownName::new(format!("value of `{}`", self.key), text, words.iter().copied()).into())
    }

    fn mismatch(&self, found: &str) -> ConfigError {
        ConfigError::Value { key: self.key.to_string(), expected: self.kind.to_string(), found: format!("`{found}`") }
    }
}

fn parse_numbers(text: &str) -> Option<Vec<(String, i64)>> {
    let parts = text.split(',').filter(|part| !part.trim().is_empty());
    parts
        .map(|part| {
            let (name, number) = part.split_once('=')?;
            Some((name.trim().to_string(), parse_int(number.trim())?))
        })
        .collect()
}

fn parse_int(text: &str) -> Option<i64> {
    text.replace('_', "").parse().ok()
}

fn parse_limit(text: &str) -> Option<Option<u64>> {
    if text == "unlimited" {
        return Some(None);
    }
    let text = text.replace('_', "");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match &text[digits.len()..] {
        "" | "B" => 1,
        "KiB" | "K" => 1 << 10,
        "MiB" | "M" => 1 << 20,
        "GiB" | "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit).map(Some)
}

impl fmt::Display for ConfigKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let within = |min: &i64, max: &i64| match max {
            &i64::MAX => format!("from {min}"),
            max => format!("from {min} to {max}"),
        };
        match self {
            ConfigKind::Int { min, max } => write!(f, "a whole number {}", within(min, max)),
            ConfigKind::Float { min, max } => {
                f.write_str("a number")?;
                if *min > f64::MIN {
                    write!(f, " from {min:?}")?;
                }
                if *max < f64::MAX {
                    write!(f, " to {max:?}")?;
                }
                Ok(())
            }
            ConfigKind::IntList { min: i64::MIN, max: i64::MAX } => {
                f.write_str("a list of whole numbers (such as `[1,2]`)")
            }
            ConfigKind::IntList { min, max } => {
                write!(f, "a list of whole numbers {} (such as `[1,2]`)", within(min, max))
            }
            ConfigKind::TextList { words: None } => f.write_str("a list of texts (such as `[a,b]`)"),
            ConfigKind::TextList { words: Some(words) } => {
                write!(f, "a list (such as `[a,b]`) of {}", words.join(", "))
            }
            ConfigKind::Bool => f.write_str("`true` or `false`"),
            ConfigKind::Str => f.write_str("a text"),
            ConfigKind::OneOf(words) => write!(f, "one of {}", words.join(", ")),
            ConfigKind::Limit => f.write_str("a whole number, also as `16KiB`, or `unlimited`"),
            ConfigKind::Numbers { min, max } => write!(f, "whole numbers {} by name", within(min, max)),
        }
    }
}

/// Writes the value in the form that [`ConfigDef::parse`] reads.
impl fmt::Display for ConfigValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigValue::Int(n) => n.fmt(f),
            // The shortest text that is read as the same number.
            ConfigValue::Float(x) => write!(f, "{x:?}"),
            ConfigValue::IntList(list) => f.write_str(&list_text(list.iter().map(i64::to_string))),
            ConfigValue::TextList(list) => f.write_str(&list_text(list.iter().map(quoted))),
            ConfigValue::Bool(b) => b.fmt(f),
            ConfigValue::Str(s) => f.write_str(s),
            ConfigValue::Limit(None) => f.write_str("unlimited"),
            ConfigValue::Limit(Some(n)) => n.fmt(f),
            ConfigValue::Numbers(numbers) => {
                let numbers: Vec<String> = numbers.iter().map(|(name, n)| format!("{name}={n}")).collect();
                f.write_str(&numbers.join(","))
            }
        }
    }
}

macro_rules! value_from {
    ($($from:ty => |$v:ident| $make:expr;)*) => {
        $(impl From<$from> for ConfigValue {
            fn from($v: $from) -> ConfigValue {
                $make
            }
        })*
    };
}

value_from! {
    i64 => |v| ConfigValue::Int(v);
    i32 => |v| ConfigValue::Int(v.into());
    u64 => |v| i64::try_from(v).map_or(ConfigValue::Limit(Some(v)), ConfigValue::Int);
    Option<u64> => |v| ConfigValue::Limit(v);
    bool => |v| ConfigValue::Bool(v);
    &str => |v| ConfigValue::Str(Cow::Owned(v.to_string()));
    String => |v| ConfigValue::Str(Cow::Owned(v));
    f64 => |v| ConfigValue::Float(v);
    Vec<i64> => |v| ConfigValue::IntList(Cow::Owned(v));
    Vec<String> => |v| ConfigValue::TextList(TextList::Owned(v));
    &[&str] => |v| ConfigValue::TextList(TextList::Owned(v.iter().map(ToString::to_string).collect()));
    Vec<(String, i64)> => |v| ConfigValue::Numbers(v);
}

/// A type that a setting can be read as.
pub trait FromConfig: Sized {
    /// The name of the type in messages.
    const TYPE: &'static str;
    /// Returns the value as this type, if it can be converted.
    fn from_config(value: &ConfigValue) -> Option<Self>;
}

macro_rules! from_config {
    ($($ty:ty, $name:literal, $value:ident => $read:expr;)*) => {
        $(impl FromConfig for $ty {
            const TYPE: &'static str = $name;
            fn from_config($value: &ConfigValue) -> Option<Self> {
                $read
            }
        })*
    };
}

fn unsigned(value: &ConfigValue) -> Option<u64> {
    match *value {
        ConfigValue::Int(n) => u64::try_from(n).ok(),
        ConfigValue::Limit(n) => Some(n.unwrap_or(u64::MAX)),
        _ => None,
    }
}

from_config! {
    // Unlimited bytes are the greatest number.
    u64, "u64", v => unsigned(v);
    usize, "usize", v => Some(usize::try_from(unsigned(v)?).unwrap_or(usize::MAX));
    u32, "u32", v => u32::try_from(unsigned(v)?).ok();
    i64, "i64", v => match *v { ConfigValue::Int(n) => Some(n), _ => None };
    bool, "bool", v => match *v { ConfigValue::Bool(b) => Some(b), _ => None };
    String, "String", v => match v { ConfigValue::Str(s) => Some(s.to_string()), _ => None };
    f64, "f64", v => match *v { ConfigValue::Float(x) => Some(x), _ => None };
    Vec<i64>, "Vec<i64>", v => match v { ConfigValue::IntList(list) => Some(list.to_vec()), _ => None };
    Vec<String>, "Vec<String>", v => match v {
        ConfigValue::TextList(list) => Some(list.iter().map(str::to_string).collect()),
        _ => None,
    };
    Vec<(String, i64)>, "Vec<(String, i64)>", v => match v { ConfigValue::Numbers(n) => Some(n.clone()), _ => None };
    // Unlimited bytes are `None`.
    Option<u64>, "Option<u64>", v => match *v { ConfigValue::Limit(n) => Some(n), _ => None };
}

/// Reads a value as a type.
///
/// # Errors
/// If the values of the setting cannot be of that type.
pub(crate) fn read<T: FromConfig>(def: &ConfigDef, value: &ConfigValue) -> Result<T, ConfigError> {
    T::from_config(value).ok_or_else(|| ConfigError::Read {
        key: def.key.to_string(),
        kind: def.kind.to_string(),
        wanted: T::TYPE,
    })
}

/// The options of a pass or of a named pipeline: a value for each option that it declares.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    pass: String,
    defs: &'static [OptionDef],
    values: Vec<ConfigValue>,
    /// Settings of the context under which the pass runs, by their keys.
    pub(crate) settings: Vec<(&'static str, ConfigValue)>,
}

impl Options {
    /// Makes the options of a pass, with their defaults.
    ///
    /// Cost: linear in the text.
    pub fn new(pass: &str, defs: &'static [OptionDef]) -> Options {
        Options {
            pass: pass.to_string(),
            defs,
            values: defs.iter().map(|d| d.default.clone()).collect(),
            settings: Vec::new(),
        }
    }

    /// Sets an option to a value.
    ///
    /// Cost: linear in the text.
    ///
    /// # Errors
    /// If the pass has no such option, or the value does not fit it.
    pub fn set(&mut self, key: &str, value: impl Into<ConfigValue>) -> Result<(), ConfigError> {
        let i = self.index(key)?;
        self.values[i] = self.defs[i].check(value.into())?;
        Ok(())
    }

    /// Sets an option to the value of a text. If the pass has no option of this name and takes
    /// numbers by name, adds a number of this name.
    ///
    /// Cost: linear in the text.
    ///
    /// # Errors
    /// If the pass has no such option, or the value does not fit it.
    pub fn set_text(&mut self, key: &str, text: &str) -> Result<(), ConfigError> {
        match self.index(key) {
            Ok(i) if !matches!(self.defs[i].kind, ConfigKind::Numbers { .. }) => {
                self.values[i] = self.defs[i].parse(text)?;
                Ok(())
            }
            _ => self.set_number(key, text),
        }
    }

    /// Adds a number by name, with the value of a text, even if an option has this name.
    ///
    /// # Errors
    /// If the pass takes no numbers by name, the name is taken, or the number does not fit.
    pub(crate) fn set_number(&mut self, name: &str, text: &str) -> Result<(), ConfigError> {
        let takes_numbers = |(i, def): (usize, &ConfigDef)| match def.kind {
            ConfigKind::Numbers { min, max } => Some((i, min, max)),
            _ => None,
        };
        let Some((i, min, max)) = self.defs.iter().enumerate().find_map(takes_numbers) else {
            return Err(self.unknown(name).into());
        };
        let number = parse_int(text).filter(|n| (min..=max).contains(n));
        let (Some(number), ConfigValue::Numbers(numbers)) = (number, &mut self.values[i]) else {
            let expected = ConfigKind::Int { min, max }.to_string();
            return Err(ConfigError::Value { key: name.to_string(), expected, found: format!("`{text}`") });
        };
        if numbers.iter().any(|(taken, _)| taken == name) {
            return Err(ConfigError::Twice(name.to_string()));
        }
        numbers.push((name.to_string(), number));
        Ok(())
    }

    /// Returns the value of an option.
    ///
    /// Cost: linear in the text.
    ///
    /// # Errors
    /// If the pass has no such option, or its values cannot be of the type.
    pub fn get<T: FromConfig>(&self, key: &str) -> Result<T, ConfigError> {
        let i = self.index(key)?;
        read(&self.defs[i], &self.values[i])
    }

    fn index(&self, key: &str) -> Result<usize, ConfigError> {
        self.defs.iter().position(|d| d.key == key).ok_or_else(|| self.unknown(key).into())
    }

    fn unknown(&self, key: &str) -> UnknownName {
        UnknownName::new(format!("option of {}", self.pass), key, self.defs.iter().map(|d| d.key))
    }

    /// Returns the options that are not at their defaults, as pipelines write them
    /// (`{key=value,…}`, or nothing), in the order of declaration.
    pub fn text(&self) -> String {
        let item = |value: &ConfigValue| match value {
            ConfigValue::IntList(_) | ConfigValue::TextList(_) => value.to_string(),
            _ => quoted(&value.to_string()),
        };
        let mut said: Vec<String> = Vec::new();
        for (def, value) in self.defs.iter().zip(&self.values).filter(|(d, v)| d.default != **v) {
            match value {
                ConfigValue::Numbers(numbers) => said.extend(numbers.iter().map(|(name, number)| {
                    // The name of another option would mean that option, unless it is in quotes.
                    let is_option = self.defs.iter().any(|d| d.key == name && d.key != def.key);
                    let name = if is_name(name) && !is_option { name.clone() } else { in_quotes(name) };
                    format!("{name}={number}")
                })),
                _ => said.push(format!("{}={}", def.key, item(value))),
            }
        }
        let short = |key: &'static str| key.strip_prefix(&*self.pass).map_or(key, |rest| &rest[1..]);
        said.extend(self.settings.iter().map(|(key, value)| format!("{}={}", short(key), item(value))));
        if said.is_empty() { String::new() } else { format!("{{{}}}", said.join(",")) }
    }
}
