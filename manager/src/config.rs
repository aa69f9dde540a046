//! Typed settings: the configuration of a context and the options of a pass.

use std::borrow::Cow;
use std::fmt;

use crate::names::UnknownName;

/// What values a setting takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConfigKind {
    /// A whole number between two others, both included.
    Int {
        /// The least.
        min: i64,
        /// The greatest.
        max: i64,
    },
    /// `true` or `false`.
    Bool,
    /// Any text.
    Str,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A number of bytes (`4096`, `16KiB`, `1MiB`, `2GiB`), or `unlimited`.
    Bytes,
}

/// The value of a setting.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConfigValue {
    /// A whole number.
    Int(i64),
    /// True or false.
    Bool(bool),
    /// A text.
    Str(Cow<'static, str>),
    /// A number of bytes; `None` is unlimited.
    Bytes(Option<u64>),
}

/// A setting that can be made: where it is declared, it has a kind, a default and a line of documentation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigDef {
    /// The name: `FoldConstant.max_growth_bytes` in a context, `commutative` for an option of a pass.
    pub key: &'static str,
    /// What values it takes.
    pub kind: ConfigKind,
    /// What it is where nothing is said.
    pub default: ConfigValue,
    /// A line about it.
    pub doc: &'static str,
}

/// An option of a pass, written `{key=value}` in pipelines.
pub type OptionDef = ConfigDef;

/// Why a setting cannot be made or read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConfigError {
    /// There is none of that name.
    #[error(transparent)]
    Unknown(#[from] UnknownName),
    /// The value does not fit.
    #[error("`{key}` takes {expected}, not {found}")]
    Value {
        /// The setting.
        key: String,
        /// What values it takes.
        expected: String,
        /// What was given.
        found: String,
    },
    /// It is not of the form `KEY=VALUE`.
    #[error("`{0}` is not of the form KEY=VALUE")]
    Form(String),
    /// It is made more than once.
    #[error("`{0}` is given more than once")]
    Twice(String),
    /// It was read as something that its values cannot be.
    #[error("`{key}` takes {kind}, and was read as {wanted}")]
    Read {
        /// The setting.
        key: String,
        /// What values it takes.
        kind: String,
        /// What it was read as.
        wanted: &'static str,
    },
}

impl ConfigDef {
    /// A whole number between two others.
    pub const fn int(key: &'static str, min: i64, max: i64, default: i64, doc: &'static str) -> ConfigDef {
        ConfigDef { key, kind: ConfigKind::Int { min, max }, default: ConfigValue::Int(default), doc }
    }

    /// `true` or `false`; false where nothing is said.
    pub const fn flag(key: &'static str, doc: &'static str) -> ConfigDef {
        ConfigDef { key, kind: ConfigKind::Bool, default: ConfigValue::Bool(false), doc }
    }

    /// Any text.
    pub const fn text(key: &'static str, default: &'static str, doc: &'static str) -> ConfigDef {
        ConfigDef { key, kind: ConfigKind::Str, default: ConfigValue::Str(Cow::Borrowed(default)), doc }
    }

    /// A number of bytes, or `unlimited` (`None`).
    pub const fn bytes(key: &'static str, default: Option<u64>, doc: &'static str) -> ConfigDef {
        ConfigDef { key, kind: ConfigKind::Bytes, default: ConfigValue::Bytes(default), doc }
    }

    /// The value that a text says.
    ///
    /// # Errors
    /// If it is not one that the setting takes.
    pub fn parse(&self, text: &str) -> Result<ConfigValue, ConfigError> {
        let value = match &self.kind {
            ConfigKind::Int { .. } => text.replace('_', "").parse().ok().map(ConfigValue::Int),
            ConfigKind::Bool => match text {
                "true" | "on" | "1" => Some(ConfigValue::Bool(true)),
                "false" | "off" | "0" => Some(ConfigValue::Bool(false)),
                _ => None,
            },
            ConfigKind::Str | ConfigKind::OneOf(_) => Some(ConfigValue::Str(Cow::Owned(text.to_string()))),
            ConfigKind::Bytes => parse_bytes(text).map(ConfigValue::Bytes),
        };
        match value {
            Some(value) => self.check(value),
            None => Err(self.mismatch(format!("`{text}`"))),
        }
    }

    /// The value itself, if it is one that the setting takes. A whole number does for a number of bytes.
    ///
    /// # Errors
    /// If it is not.
    pub fn check(&self, value: ConfigValue) -> Result<ConfigValue, ConfigError> {
        let fitting = match (&self.kind, value) {
            (&ConfigKind::Int { min, max }, ConfigValue::Int(n)) if (min..=max).contains(&n) => Ok(ConfigValue::Int(n)),
            (ConfigKind::Bool, v @ ConfigValue::Bool(_)) | (ConfigKind::Str, v @ ConfigValue::Str(_)) => Ok(v),
            (ConfigKind::OneOf(words), ConfigValue::Str(s)) if words.contains(&&*s) => Ok(ConfigValue::Str(s)),
            (ConfigKind::Bytes, v @ ConfigValue::Bytes(_)) => Ok(v),
            (ConfigKind::Bytes, ConfigValue::Int(n)) if n >= 0 => Ok(ConfigValue::Bytes(Some(n as u64))),
            (_, other) => Err(other),
        };
        fitting.map_err(|other| {
            if let (ConfigKind::OneOf(words), ConfigValue::Str(s)) = (&self.kind, &other) {
                return UnknownName::new(format!("value of `{}`", self.key), s, words.iter().copied()).into();
            }
            self.mismatch(format!("`{other}`"))
        })
    }

    fn mismatch(&self, found: String) -> ConfigError {
        ConfigError::Value { key: self.key.to_string(), expected: self.kind.to_string(), found }
    }
}

fn parse_bytes(text: &str) -> Option<Option<u64>> {
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
        match self {
            ConfigKind::Int { min, max: i64::MAX } => write!(f, "a whole number from {min}"),
            ConfigKind::Int { min, max } => write!(f, "a whole number from {min} to {max}"),
            ConfigKind::Bool => f.write_str("`true` or `false`"),
            ConfigKind::Str => f.write_str("a text"),
            ConfigKind::OneOf(words) => write!(f, "one of {}", words.join(", ")),
            ConfigKind::Bytes => f.write_str("a number of bytes (such as `16KiB`) or `unlimited`"),
        }
    }
}

/// As [`ConfigDef::parse`] reads it.
impl fmt::Display for ConfigValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigValue::Int(n) => n.fmt(f),
            ConfigValue::Bool(b) => b.fmt(f),
            ConfigValue::Str(s) => f.write_str(s),
            ConfigValue::Bytes(None) => f.write_str("unlimited"),
            ConfigValue::Bytes(Some(n)) => n.fmt(f),
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
    u32 => |v| ConfigValue::Int(v.into());
    u64 => |v| i64::try_from(v).map_or(ConfigValue::Bytes(Some(v)), ConfigValue::Int);
    Option<u64> => |v| ConfigValue::Bytes(v);
    bool => |v| ConfigValue::Bool(v);
    &str => |v| ConfigValue::Str(Cow::Owned(v.to_string()));
    String => |v| ConfigValue::Str(Cow::Owned(v));
}

/// A type that a setting can be read as.
pub trait FromConfig: Sized {
    /// What messages call the type.
    const TYPE: &'static str;
    /// The value as this type, if it can be one.
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
        ConfigValue::Bytes(n) => Some(n.unwrap_or(u64::MAX)),
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
    // Unlimited bytes are `None`.
    Option<u64>, "Option<u64>", v => match *v { ConfigValue::Bytes(n) => Some(n), _ => None };
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

/// The options of a pass: each that it declares has a value.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    pass: String,
    defs: &'static [OptionDef],
    values: Vec<ConfigValue>,
}

impl Options {
    /// The defaults of a pass's options.
    pub fn new(pass: &str, defs: &'static [OptionDef]) -> Options {
        Options { pass: pass.to_string(), defs, values: defs.iter().map(|d| d.default.clone()).collect() }
    }

    /// Gives an option a value.
    ///
    /// # Errors
    /// If the pass has no such option, or the value does not fit it.
    pub fn set(&mut self, key: &str, value: impl Into<ConfigValue>) -> Result<(), ConfigError> {
        let i = self.index(key)?;
        self.values[i] = self.defs[i].check(value.into())?;
        Ok(())
    }

    /// Gives an option the value that a text says.
    ///
    /// # Errors
    /// If the pass has no such option, or the value does not fit it.
    pub fn set_text(&mut self, key: &str, text: &str) -> Result<(), ConfigError> {
        let i = self.index(key)?;
        self.values[i] = self.defs[i].parse(text)?;
        Ok(())
    }

    /// The value of an option.
    ///
    /// # Errors
    /// If the pass has no such option, or its values cannot be of the type.
    pub fn get<T: FromConfig>(&self, key: &str) -> Result<T, ConfigError> {
        let i = self.index(key)?;
        read(&self.defs[i], &self.values[i])
    }

    fn index(&self, key: &str) -> Result<usize, ConfigError> {
        self.defs.iter().position(|d| d.key == key).ok_or_else(|| {
            UnknownName::new(format!("option of {}", self.pass), key, self.defs.iter().map(|d| d.key)).into()
        })
    }

    /// The options that are not at their defaults, as pipelines write them (`{key=value,…}`, or nothing), in the order of declaration.
    pub fn text(&self) -> String {
        let said: Vec<String> = self
            .defs
            .iter()
            .zip(&self.values)
            .filter(|(d, v)| d.default != **v)
            .map(|(d, v)| format!("{}={}", d.key, quoted(&v.to_string())))
            .collect();
        if said.is_empty() { String::new() } else { format!("{{{}}}", said.join(",")) }
    }
}

/// A word that needs no quotes in a pipeline.
pub(crate) fn is_bare(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '+' | '@' | '%' | '/' | ':')
}

/// A value as pipelines write it: in quotes where it is not a word.
fn quoted(text: &str) -> String {
    if !text.is_empty() && text.chars().all(is_bare) {
        return text.to_string();
    }
    let mut out = String::from("\"");
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}
