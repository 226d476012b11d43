//! The enums of messages whose fields depend on the operation.

/// Defines an enum of requests. Each variant has the name of its operation.
///
/// What `other` names is an operation that is not in the table, with its bytes.
macro_rules! operations {
    (
        $(#[$about:meta])*
        pub enum $name:ident {
            $($(#[$about_variant:meta])* $variant:ident $(($fields:ident: $type:ty))?,)*
        }
        $($(#[$about_other:meta])* $other:ident $other_fields:tt)?
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$about_variant])* $variant $(($type))?,)*
            $($(#[$about_other])* $other $other_fields,)?
        }

        impl $name {
            /// The operation's number.
            pub fn opcode(&self) -> OpCode {
                match self {
                    $($name::$variant { .. } => OpCode::$variant,)*
                    $($name::$other { opcode, .. } => *opcode,)?
                }
            }

            fn encode(&self, to: &mut Output<'_>) {
                match self {
                    $($name::$variant $(($fields))? => { $($fields.encode(to);)? })*
                    $($name::$other { bytes, .. } => to.put(bytes),)?
                }
            }

            /// `None` if the table does not have the operation.
            fn decode(opcode: OpCode, from: &mut Input<'_>) -> Result<Option<$name>, DecodeError> {
                Ok(Some(match opcode {
                    $(OpCode::$variant => $name::$variant $((<$type>::decode(from)?))?,)*
                    _ => return Ok(None),
                }))
            }
        }
    };
}

/// Defines an enum of results. Behind `for` are the operations that each variant is the result of.
macro_rules! results {
    (
        $(#[$about:meta])*
        pub enum $name:ident {
            $(
                $(#[$about_variant:meta])*
                $variant:ident
                $({ $($(#[$about_field:meta])* $field:ident: $type:ty,)* })?
                $(($only:ident: $only_type:ty))?
                for $($opcode:ident)|+,
            )*
        }
        $($(#[$about_other:meta])* $other:ident($bytes:ty))?
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $(
                $(#[$about_variant])*
                $variant $({ $($(#[$about_field])* $field: $type,)* })? $(($only_type))?,
            )*
            $($(#[$about_other])* $other($bytes),)?
        }

        impl $name {
            fn encode(&self, to: &mut Output<'_>) {
                match self {
                    $($name::$variant $({ $($field,)* })? $(($only))? => {
                        $($($field.encode(to);)*)?
                        $($only.encode(to);)?
                    })*
                    $($name::$other(bytes) => to.put(bytes),)?
                }
            }

            /// `None` if the table does not have the operation.
            fn decode(opcode: OpCode, from: &mut Input<'_>) -> Result<Option<$name>, DecodeError> {
                Ok(Some(match opcode {
                    $($(OpCode::$opcode)|+ => $name::$variant
                        $({ $($field: <$type>::decode(from)?,)* })?
                        $((<$only_type>::decode(from)?))?,)*
                    _ => return Ok(None),
                }))
            }
        }
    };
}

pub(crate) use {operations, results};
