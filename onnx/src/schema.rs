//! One declaration of each message says both how `prost` decodes it and what [`crate::wire`] allows
//! in it.

use bytes::Bytes;

/// A message of the format, for the check of a file.
pub(crate) struct Schema {
    pub(crate) name: &'static str,
    fields: &'static [Field],
    /// The fields of which the message has at most one.
    choices: &'static [Field],
}

impl Schema {
    pub(crate) const fn new(name: &'static str, fields: &'static [Field], choices: &'static [Field]) -> Schema {
        Schema { name, fields, choices }
    }

    /// Returns the field with a number.
    pub(crate) fn field(&self, number: u32) -> Option<&'static Field> {
        self.fields.iter().chain(self.choices).find(|f| f.number == number)
    }
}

/// A field of a message.
pub(crate) struct Field {
    number: u32,
    pub(crate) name: &'static str,
    pub(crate) payload: Payload,
}

impl Field {
    /// Returns a field. Its name is the identifier without `r#`, the prefix of raw identifiers.
    pub(crate) const fn new(number: u32, identifier: &'static str, payload: Payload) -> Field {
        let name = match identifier.as_bytes() {
            [b'r', b'#', ..] => identifier.split_at(2).1,
            _ => identifier,
        };
        Field { number, name, payload }
    }
}

/// No fields.
pub(crate) const NONE: &[Field] = &[];

/// The encoding of a field's value.
#[derive(Copy, Clone)]
pub(crate) enum Payload {
    /// A number: its wire type, and its bytes, or 1 if their number is variable.
    Number(u8, usize),
    /// Such numbers, packed or separate.
    Numbers(u8, usize),
    /// Bytes.
    Blob,
    /// A text.
    Text,
    /// A message.
    Message(fn() -> &'static Schema),
    /// A message that is decoded later. The decoder takes only its last occurrence.
    LazyMessage(fn() -> &'static Schema),
}

/// The types of fields.
pub(crate) trait Wire {
    const PAYLOAD: Payload;
    const IS_LIST: bool = false;
}

macro_rules! plain {
    ($($ty:ty: $payload:expr,)*) => {
        $(impl Wire for $ty { const PAYLOAD: Payload = $payload; })*
    };
}

plain! {
    i32: Payload::Number(0, 1),
    i64: Payload::Number(0, 1),
    u64: Payload::Number(0, 1),
    f32: Payload::Number(5, 4),
    f64: Payload::Number(1, 8),
    String: Payload::Text,
    Bytes: Payload::Blob,
}

impl<T: Wire> Wire for Option<T> {
    const PAYLOAD: Payload = T::PAYLOAD;
}

impl<T: Wire> Wire for Box<T> {
    const PAYLOAD: Payload = T::PAYLOAD;
}

impl<T: Wire> Wire for Vec<T> {
    const PAYLOAD: Payload = match T::PAYLOAD {
        Payload::Number(wire, size) => Payload::Numbers(wire, size),
        other => other,
    };
    const IS_LIST: bool = true;
}

/// Returns the payload of a field of type `T`, whose bytes are messages that are decoded later.
pub(crate) const fn later<T: Wire>(schema: fn() -> &'static Schema) -> Payload {
    if T::IS_LIST { Payload::Message(schema) } else { Payload::LazyMessage(schema) }
}

/// Returns the payload of a field from its type, and from the message that its bytes are if that is
/// decoded later.
macro_rules! payload {
    ($ty:ty) => {
        <$ty as $crate::schema::Wire>::PAYLOAD
    };
    ($ty:ty, $message:ty) => {
        $crate::schema::later::<$ty>(<$message>::schema)
    };
}

/// Declares messages. A field consists of its number with options for `prost`, its name and its
/// type. If its bytes are a message that is decoded later, the type of this message follows after
/// `as`. A string after the name of a message is the name of the message in errors. If a field can
/// have several kinds in the format, it comes first, in parentheses.
macro_rules! messages {
    ($(
        $(#[$doc:meta])*
        struct $name:ident $($full:literal)? $(oneof($(#[$choice_doc:meta])* [$($oneof:tt)*] $choice:ident: $kinds:ty))? {
            $($(#[$field_doc:meta])* [$number:tt $($prost:tt)*] $field:ident: $ty:ty $(as $message:ty)?,)*
        }
    )*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, PartialEq, prost::Message)]
            pub struct $name {
                $($(#[$choice_doc])* #[prost($($oneof)*)] pub $choice: Option<$kinds>,)?
                $($(#[$field_doc])* #[prost($($prost)*, tag = $number)] pub $field: $ty,)*
            }

            impl $name {
                pub(crate) fn schema() -> &'static $crate::schema::Schema {
                    static SCHEMA: $crate::schema::Schema = $crate::schema::Schema::new(
                        [$($full,)? stringify!($name)][0],
                        &[$($crate::schema::Field::new(
                            $number,
                            stringify!($field),
                            $crate::schema::payload!($ty $(, $message)?),
                        ),)*],
                        [$(<$kinds>::FIELDS,)? $crate::schema::NONE][0],
                    );
                    &SCHEMA
                }
            }

            impl $crate::schema::Wire for $name {
                const PAYLOAD: $crate::schema::Payload = $crate::schema::Payload::Message($name::schema);
            }
        )*
    };
}

/// Declares the kinds of a field, of which a message has one. Each is written as a field, with the
/// name of the variant before its type.
macro_rules! kinds {
    (
        $(#[$doc:meta])*
        enum $name:ident {
            $($(#[$kind_doc:meta])* [$number:tt $($prost:tt)*] $field:ident: $kind:ident($ty:ty) $(as $message:ty)?,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, prost::Oneof)]
        pub enum $name {
            $($(#[$kind_doc])* #[prost($($prost)*, tag = $number)] $kind($ty),)*
        }

        impl $name {
            pub(crate) const FIELDS: &[$crate::schema::Field] = &[$($crate::schema::Field::new(
                $number,
                stringify!($field),
                $crate::schema::payload!($ty $(, $message)?),
            ),)*];
        }
    };
}

pub(crate) use {kinds, messages, payload};
