//! Jute, ZooKeeper's serialization: big-endian numbers, and lengths before what has one.

use std::sync::Arc;

use crate::error::DecodeError;
use crate::text::{self, Form};

/// The bytes of a message that are not yet decoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Input<'a> {
    bytes: &'a [u8],
    form: Form,
}

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8], form: Form) -> Input<'a> {
        Input { bytes, form }
    }

    pub(crate) fn rest(self) -> &'a [u8] {
        self.bytes
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self
            .bytes
            .split_at_checked(count)
            .ok_or(DecodeError::Truncated {
                needed: count as u64,
                left: self.bytes.len(),
            })?;
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (taken, rest) = self
            .bytes
            .split_first_chunk()
            .ok_or(DecodeError::Truncated {
                needed: N as u64,
                left: self.bytes.len(),
            })?;
        self.bytes = rest;
        Ok(*taken)
    }

    /// Takes a length, and as many bytes. The length -1 means no bytes at all.
    fn buffer(&mut self) -> Result<Option<&'a [u8]>, DecodeError> {
        match i32::decode(self)? {
            -1 => Ok(None),
            length => match usize::try_from(length) {
                Ok(length) => self.take(length).map(Some),
                Err(_) => Err(DecodeError::NegativeLength(length)),
            },
        }
    }

    fn string(&mut self) -> Result<Option<String>, DecodeError> {
        let bytes = self.buffer()?;
        Ok(bytes.map(|bytes| text::decoded(bytes, self.form)))
    }
}

/// The end of a buffer that a message is appended to.
#[derive(Debug)]
pub(crate) struct Output<'a> {
    bytes: &'a mut Vec<u8>,
    form: Form,
    limit: usize,
    /// The length of the message. If it is above the limit, the rest of the message is left out.
    pub(crate) length: usize,
}

impl<'a> Output<'a> {
    pub(crate) fn new(bytes: &'a mut Vec<u8>, form: Form, limit: usize) -> Output<'a> {
        Output {
            bytes,
            form,
            limit,
            length: 0,
        }
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.length = self.length.saturating_add(bytes.len());
        if self.length <= self.limit {
            self.bytes.extend_from_slice(bytes);
        }
    }
}

/// A length or a count as it is written before what it belongs to.
///
/// A message with more than `i32::MAX` of anything is above each limit, and is not sent.
pub(crate) fn length(length: usize) -> i32 {
    i32::try_from(length).unwrap_or(i32::MAX)
}

/// A value that jute can encode and decode.
pub(crate) trait Record: Sized {
    /// How many bytes a value takes at least.
    const SMALLEST: usize;

    fn encode(&self, to: &mut Output<'_>);

    fn decode(from: &mut Input<'_>) -> Result<Self, DecodeError>;
}

impl Record for i32 {
    const SMALLEST: usize = 4;

    fn encode(&self, to: &mut Output<'_>) {
        to.put(&self.to_be_bytes());
    }

    fn decode(from: &mut Input<'_>) -> Result<i32, DecodeError> {
        from.array().map(i32::from_be_bytes)
    }
}

impl Record for i64 {
    const SMALLEST: usize = 8;

    fn encode(&self, to: &mut Output<'_>) {
        to.put(&self.to_be_bytes());
    }

    fn decode(from: &mut Input<'_>) -> Result<i64, DecodeError> {
        from.array().map(i64::from_be_bytes)
    }
}

/// Any byte but 0 is true.
impl Record for bool {
    const SMALLEST: usize = 1;

    fn encode(&self, to: &mut Output<'_>) {
        to.put(&[u8::from(*self)]);
    }

    fn decode(from: &mut Input<'_>) -> Result<bool, DecodeError> {
        from.array().map(|[byte]| byte != 0)
    }
}

fn encode_buffer(bytes: &[u8], to: &mut Output<'_>) {
    length(bytes.len()).encode(to);
    to.put(bytes);
}

fn encode_text(text: &str, to: &mut Output<'_>) {
    encode_buffer(&text::encoded(text, to.form), to);
}

impl Record for Arc<str> {
    const SMALLEST: usize = 4;

    fn encode(&self, to: &mut Output<'_>) {
        encode_text(self, to);
    }

    fn decode(from: &mut Input<'_>) -> Result<Arc<str>, DecodeError> {
        String::decode(from).map(Arc::from)
    }
}

impl Record for String {
    const SMALLEST: usize = 4;

    fn encode(&self, to: &mut Output<'_>) {
        encode_text(self, to);
    }

    fn decode(from: &mut Input<'_>) -> Result<String, DecodeError> {
        from.string()?.ok_or(DecodeError::NullString)
    }
}

impl Record for Option<String> {
    const SMALLEST: usize = 4;

    fn encode(&self, to: &mut Output<'_>) {
        match self {
            Some(text) => text.encode(to),
            None => (-1).encode(to),
        }
    }

    fn decode(from: &mut Input<'_>) -> Result<Option<String>, DecodeError> {
        from.string()
    }
}

impl Record for Option<Vec<u8>> {
    const SMALLEST: usize = 4;

    fn encode(&self, to: &mut Output<'_>) {
        match self {
            Some(bytes) => encode_buffer(bytes, to),
            None => (-1).encode(to),
        }
    }

    fn decode(from: &mut Input<'_>) -> Result<Option<Vec<u8>>, DecodeError> {
        Ok(from.buffer()?.map(<[u8]>::to_vec))
    }
}

/// A buffer for which none and an empty one mean the same.
impl Record for Vec<u8> {
    const SMALLEST: usize = 4;

    fn encode(&self, to: &mut Output<'_>) {
        encode_buffer(self, to);
    }

    fn decode(from: &mut Input<'_>) -> Result<Vec<u8>, DecodeError> {
        Ok(from.buffer()?.unwrap_or_default().to_vec())
    }
}

/// A negative count means an empty list, as Apache's server takes it.
impl<T: Record> Record for Vec<T> {
    const SMALLEST: usize = 4;

    fn encode(&self, to: &mut Output<'_>) {
        length(self.len()).encode(to);
        for value in self {
            value.encode(to);
        }
    }

    fn decode(from: &mut Input<'_>) -> Result<Vec<T>, DecodeError> {
        let count = usize::try_from(i32::decode(from)?).unwrap_or(0);
        let left = from.rest().len();
        if count > left / T::SMALLEST {
            return Err(DecodeError::Truncated {
                needed: count as u64 * T::SMALLEST as u64,
                left,
            });
        }
        let mut values = Vec::with_capacity(count);
        for _ in 0..count {
            values.push(T::decode(from)?);
        }
        Ok(values)
    }
}

/// Defines structs whose fields are encoded one after the other.
macro_rules! records {
    ($($(#[$about:meta])* $visibility:vis struct $name:ident $fields:tt)*) => {
        $crate::jute::coded_structs! {
            $($(#[$about])* #[derive(Debug)] $visibility struct $name $fields)*
        }
    };
}

/// Defines structs as [`records`] does, with a function that makes one from its fields in order.
macro_rules! operation_records {
    ($(
        $(#[$about:meta])*
        pub struct $name:ident {
            $($(#[$about_field:meta])* pub $field:ident: $type:ty,)*
        }
    )*) => {
        $crate::jute::records! {$(
            $(#[$about])*
            pub struct $name { $($(#[$about_field])* pub $field: $type,)* }
        )*}

        $(impl $name {
            /// The fields, in their order.
            pub fn new($($field: impl Into<$type>),*) -> $name {
                $name { $($field: $field.into(),)* }
            }
        })*
    };
}

/// Defines structs as [`records`] does. `Debug` shows these fields, and leaves the secrets out.
macro_rules! secret_records {
    ($(
        $(#[$about:meta])*
        $visibility:vis struct $name:ident $fields:tt shows { $($shown:ident)* }
    )*) => {
        $crate::jute::coded_structs! {
            $($(#[$about])* $visibility struct $name $fields)*
        }

        $(impl std::fmt::Debug for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut shown = formatter.debug_struct(stringify!($name));
                $(shown.field(stringify!($shown), &self.$shown);)*
                shown.finish_non_exhaustive()
            }
        })*
    };
}

macro_rules! coded_structs {
    ($(
        $(#[$about:meta])*
        $visibility:vis struct $name:ident {
            $($(#[$about_field:meta])* $field_visibility:vis $field:ident: $type:ty,)*
        }
    )*) => {$(
        $(#[$about])*
        #[derive(Clone, PartialEq, Eq, Hash)]
        $visibility struct $name {
            $($(#[$about_field])* $field_visibility $field: $type,)*
        }

        impl $crate::jute::Record for $name {
            const SMALLEST: usize = 0 $(+ <$type as $crate::jute::Record>::SMALLEST)*;

            fn encode(&self, to: &mut $crate::jute::Output<'_>) {
                $($crate::jute::Record::encode(&self.$field, to);)*
            }

            fn decode(
                from: &mut $crate::jute::Input<'_>,
            ) -> Result<$name, $crate::error::DecodeError> {
                Ok($name { $($field: $crate::jute::Record::decode(from)?,)* })
            }
        }
    )*};
}

/// Defines enums of the numbers that have a meaning, each with a variant for all others.
macro_rules! codes {
    ($(
        $(#[$about:meta])*
        pub enum $name:ident {
            $($(#[$about_variant:meta])* $variant:ident = $code:literal,)*
        }
    )*) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$about_variant])* $variant,)*
            /// Any other number. `From<i32>` uses it for numbers of no other variant only.
            Unknown(i32),
        }

        impl From<i32> for $name {
            fn from(code: i32) -> $name {
                match code {
                    $($code => $name::$variant,)*
                    code => $name::Unknown(code),
                }
            }
        }

        impl From<$name> for i32 {
            fn from(code: $name) -> i32 {
                match code {
                    $($name::$variant => $code,)*
                    $name::Unknown(code) => code,
                }
            }
        }

        impl $crate::jute::Record for $name {
            const SMALLEST: usize = 4;

            fn encode(&self, to: &mut $crate::jute::Output<'_>) {
                i32::from(*self).encode(to);
            }

            fn decode(
                from: &mut $crate::jute::Input<'_>,
            ) -> Result<$name, $crate::error::DecodeError> {
                i32::decode(from).map($name::from)
            }
        }
    )*};
}

pub(crate) use {coded_structs, codes, operation_records, records, secret_records};
