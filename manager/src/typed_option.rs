//! Options with the types that a pass reads them as, for [`register_pass!`](crate::register_pass).

use std::borrow::Cow;
use std::fmt::Display;
use std::marker::PhantomData;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::config::{ConfigDef, ConfigError, ConfigKind, ConfigValue, FromConfig, OptionDef, Options};
use crate::error::PassError;

/// Declares options that are read as `T`. A default that does not fit is a compile error if the
/// option is a constant.
#[doc(hidden)]
#[derive(Debug)]
pub struct Typed<T>(PhantomData<T>);

macro_rules! whole_numbers {
    ($($ty:ty, $min:expr, $max:expr;)*) => {
        $(impl Typed<$ty> {
            /// Declares an option with any value of the type that an option can hold.
            pub const fn option(key: &'static str, default: $ty, doc: &'static str) -> OptionDef {
                Typed::<$ty>::option_in(key, $min..=$max, default, doc)
            }

            /// Declares an option with the values in a range.
            pub const fn option_in(
                key: &'static str,
                range: RangeInclusive<$ty>,
                default: $ty,
                doc: &'static str,
            ) -> OptionDef {
                let (min, max) = (*range.start(), *range.end());
                assert!(max as i128 <= i64::MAX as i128, "the range holds numbers that an option cannot hold");
                assert!(min <= default && default <= max, "the default is not in the range");
                ConfigDef::int(key, min as i64, max as i64, default as i64, doc)
            }
        })*
    };
}

whole_numbers! {
    u32, 0, u32::MAX;
    u64, 0, i64::MAX as u64;
    usize, 0, usize::MAX >> 1;
    i64, i64::MIN, i64::MAX;
}

impl Typed<f64> {
    /// Declares an option that is any finite number.
    ///
    /// Cost: linear in the text.
    pub const fn option(key: &'static str, default: f64, doc: &'static str) -> OptionDef {
        Typed::<f64>::option_in(key, f64::MIN..=f64::MAX, default, doc)
    }

    /// Declares an option that is a number in a range.
    ///
    /// Cost: linear in the text.
    pub const fn option_in(
        key: &'static str,
        range: RangeInclusive<f64>,
        default: f64,
        doc: &'static str,
    ) -> OptionDef {
        let (min, max) = (*range.start(), *range.end());
        assert!(min <= default && default <= max, "the default is not in the range");
        ConfigDef::float(key, min, max, default, doc)
    }
}

impl Typed<Vec<i64>> {
    /// Declares an option that is a list of any whole numbers.
    ///
    /// Cost: linear in the text.
    pub const fn option(key: &'static str, default: &'static [i64], doc: &'static str) -> OptionDef {
        Typed::<Vec<i64>>::option_in(key, i64::MIN..=i64::MAX, default, doc)
    }

    /// Declares an option that is a list of whole numbers in a range.
    ///
    /// Cost: linear in the text.
    pub const fn option_in(
        key: &'static str,
        range: RangeInclusive<i64>,
        default: &'static [i64],
        doc: &'static str,
    ) -> OptionDef {
        let (min, max) = (*range.start(), *range.end());
        let mut i = 0;
        while i < default.len() {
            assert!(min <= default[i] && default[i] <= max, "the default has a number that is not in the range");
            i += 1;
        }
        ConfigDef::int_list(key, min, max, default, doc)
    }
}

impl Typed<Vec<String>> {
    /// Declares an option that is a list of any texts.
    ///
    /// Cost: linear in the text.
    pub const fn option(key: &'static str, default: &'static [&'static str], doc: &'static str) -> OptionDef {
        ConfigDef::text_list(key, default, doc)
    }
}

impl Typed<bool> {
    /// Declares an option that is `true` or `false`.
    ///
    /// Cost: linear in the text.
    pub const fn option(key: &'static str, default: bool, doc: &'static str) -> OptionDef {
        ConfigDef { key, kind: ConfigKind::Bool, default: ConfigValue::Bool(default), doc }
    }
}

impl Typed<String> {
    /// Declares an option that is any text.
    ///
    /// Cost: linear in the text.
    pub const fn option(key: &'static str, default: &'static str, doc: &'static str) -> OptionDef {
        ConfigDef::text(key, default, doc)
    }
}

impl Typed<Option<u64>> {
    /// Declares an option that is a number of bytes; `None` is unlimited.
    ///
    /// Cost: linear in the text.
    pub const fn option(key: &'static str, default: Option<u64>, doc: &'static str) -> OptionDef {
        ConfigDef::bytes(key, default, doc)
    }
}

impl Typed<Vec<(String, i64)>> {
    /// Declares an option of whole numbers by name, without numbers by default.
    ///
    /// Cost: linear in the text.
    pub const fn option(key: &'static str, default: [(String, i64); 0], doc: &'static str) -> OptionDef {
        Typed::<Vec<(String, i64)>>::option_in(key, i64::MIN..=i64::MAX, default, doc)
    }

    /// Declares an option of whole numbers in a range by name, without numbers by default.
    ///
    /// Cost: linear in the text.
    pub const fn option_in(
        key: &'static str,
        range: RangeInclusive<i64>,
        default: [(String, i64); 0],
        doc: &'static str,
    ) -> OptionDef {
        let [] = default;
        let kind = ConfigKind::Numbers { min: *range.start(), max: *range.end() };
        ConfigDef { key, kind, default: ConfigValue::Numbers(Vec::new()), doc }
    }
}

/// Declares an option that is one of several words.
///
/// Cost: linear in the text.
#[doc(hidden)]
pub const fn option_of_words(
    key: &'static str,
    words: &'static [&'static str],
    default: &'static str,
    doc: &'static str,
) -> OptionDef {
    let (mut i, mut found) = (0, false);
    while i < words.len() {
        found |= equal(words[i].as_bytes(), default.as_bytes());
        i += 1;
    }
    assert!(found, "the default is none of the words");
    ConfigDef { key, kind: ConfigKind::OneOf(words), default: ConfigValue::Str(Cow::Borrowed(default)), doc }
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

/// Returns the line of a doc comment, for lists.
///
/// Cost: linear in the text.
#[doc(hidden)]
pub const fn doc_line(comment: &'static str) -> &'static str {
    comment.trim_ascii()
}

/// Reads an option as its type.
///
/// Cost: linear in the text.
#[doc(hidden)]
pub fn read_option<T: FromConfig>(options: &Options, key: &str) -> Result<T, PassError> {
    Ok(options.get(key)?)
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
