//! Options with the types that a pass reads them as, for [`register_pass!`](crate::register_pass).

use std::borrow::Cow;
use std::fmt::Display;
use std::marker::PhantomData;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::config::{ConfigDef, ConfigError, ConfigKind, ConfigValue, OptionDef, Options, TextList};
use crate::error::PassError;

/// The values of options that are read as `T`.
#[doc(hidden)]
#[derive(Debug)]
pub struct Typed<T>(PhantomData<T>);

macro_rules! option_types {
    ($($ty:ty: $given:ty, $default:ident => $value:expr, $kind:expr $(, [$of:ty] $range:ident => $ranged:expr)?;)*) => {
        $(impl Typed<$ty> {
            /// All values of the type that an option can hold.
            pub const KIND: ConfigKind = $kind;

            /// Returns a default as the value of a setting.
            pub const fn value($default: $given) -> ConfigValue {
                $value
            }

            $(/// Returns the kind with the values, or the parts of values, in a range.
            pub const fn within($range: RangeInclusive<$of>) -> ConfigKind {
                $ranged
            })?
        })*
    };
}

const fn whole(number: i128) -> i64 {
    assert!(number <= i64::MAX as i128, "the range holds numbers that an option cannot hold");
    number as i64
}

const fn int(min: i128, max: i128) -> ConfigKind {
    ConfigKind::Int { min: whole(min), max: whole(max) }
}

option_types! {
    u32: u32, n => ConfigValue::Int(n as i64), int(0, u32::MAX as i128), [u32] r => int(*r.start() as i128, *r.end() as i128);
    u64: u64, n => ConfigValue::Int(n as i64), int(0, i64::MAX as i128), [u64] r => int(*r.start() as i128, *r.end() as i128);
    usize: usize, n => ConfigValue::Int(n as i64), int(0, isize::MAX as i128),
        [usize] r => int(*r.start() as i128, *r.end() as i128);
    i64: i64, n => ConfigValue::Int(n), ConfigKind::Int { min: i64::MIN, max: i64::MAX },
        [i64] r => ConfigKind::Int { min: *r.start(), max: *r.end() };
    f64: f64, x => ConfigValue::Float(x), ConfigKind::Float { min: f64::MIN, max: f64::MAX },
        [f64] r => ConfigKind::Float { min: *r.start(), max: *r.end() };
    bool: bool, b => ConfigValue::Bool(b), ConfigKind::Bool;
    String: &'static str, text => ConfigValue::Str(Cow::Borrowed(text)), ConfigKind::Str;
    Option<u64>: Option<u64>, limit => ConfigValue::Limit(limit), ConfigKind::Limit;
    Vec<i64>: &'static [i64], list => ConfigValue::IntList(Cow::Borrowed(list)),
        ConfigKind::IntList { min: i64::MIN, max: i64::MAX },
        [i64] r => ConfigKind::IntList { min: *r.start(), max: *r.end() };
    Vec<String>: &'static [&'static str], list => ConfigValue::TextList(TextList::Static(list)),
        ConfigKind::TextList { words: None };
    Vec<(String, i64)>: NoNumbers, none => { let [] = none; ConfigValue::Numbers(Vec::new()) },
        ConfigKind::Numbers { min: i64::MIN, max: i64::MAX },
        [i64] r => ConfigKind::Numbers { min: *r.start(), max: *r.end() };
}

type NoNumbers = [(String, i64); 0];

/// Declares an option. A default that does not fit is a compile error if the option is a constant.
///
/// Cost: linear in the text.
#[doc(hidden)]
pub const fn declare(identifier: &'static str, kind: ConfigKind, default: ConfigValue, doc: &'static str) -> OptionDef {
    match (&kind, &default) {
        (ConfigKind::Int { min, max }, ConfigValue::Int(n)) => {
            assert!(*min <= *n && *n <= *max, "the default is not in the range");
        }
        (ConfigKind::Float { min, max }, ConfigValue::Float(x)) => {
            assert!(*min <= *x && *x <= *max, "the default is not in the range");
        }
        (ConfigKind::IntList { min, max }, ConfigValue::IntList(Cow::Borrowed(list))) => {
            let mut i = 0;
            while i < list.len() {
                assert!(*min <= list[i] && list[i] <= *max, "the default has a number that is not in the range");
                i += 1;
            }
        }
        (ConfigKind::OneOf(words), ConfigValue::Str(Cow::Borrowed(default))) => {
            let (mut i, mut found) = (0, false);
            while i < words.len() {
                found |= equal(words[i].as_bytes(), default.as_bytes());
                i += 1;
            }
            assert!(found, "the default is none of the words");
        }
        _ => {}
    }
    ConfigDef { key: option_key(identifier), kind, default, doc: doc.trim_ascii() }
}

const fn equal(a: &[u8], b: &[u8]) -> bool {
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

/// Returns the name of an option, as pipelines write it.
///
/// Cost: linear in the text.
#[doc(hidden)]
pub const fn option_key(identifier: &'static str) -> &'static str {
    match identifier.as_bytes() {
        [b'r', b'#', ..] => identifier.split_at(2).1,
        _ => identifier,
    }
}

/// Reads an option that is one of several words as a type that parses these words.
///
/// Cost: linear in the text.
///
/// # Errors
/// If the type cannot parse a word that the option takes.
#[doc(hidden)]
pub fn read_word<T: FromStr<Err: Display>>(options: &Options, key: &str) -> Result<T, PassError> {
    let word: String = options.get(key)?;
    word.parse().map_err(|error| {
        let expected = format!("a word of its type ({error})");
        PassError::from_error(ConfigError::Value { key: key.to_string(), expected, found: format!("`{word}`") })
    })
}
