//! The macros that define messages.

/// Defines a struct as a message, with the tag of each field. A field without a tag has a type
/// whose fields are those of this message: a `part`, or an enum of [`oneof!`]. A field that is
/// written as another type has a wrapper of that after `as`.
macro_rules! message {
    ($(#[$meta:meta])* $vis:vis struct $name:ident $fields:tt) => {
        $crate::history::protobuf::message!(@define ($(#[$meta])*) ($vis) $name false $fields);
    };
    ($(#[$meta:meta])* $vis:vis part $name:ident $fields:tt) => {
        $crate::history::protobuf::message!(@define ($(#[$meta])*) ($vis) $name true $fields);
    };
    (@define ($($meta:tt)*) ($vis:vis) $name:ident $is_part:literal {
        $($(#[$about:meta])* $field:ident: $type:ty $(as $wrapper:ident)? $(= $tag:literal)?),*
        $(,)?
    }) => {
        #[cfg_attr(test, derive(arbitrary::Arbitrary))]
        #[derive(Clone, Debug, PartialEq)]
        $($meta)*
        $vis struct $name {
            $($(#[$about])* pub $field: $type,)*
        }
        $crate::history::protobuf::message! {
            @implement $name $is_part { $($field: $type $(as $wrapper)? $(= $tag)?,)* }
        }
    };
    (@implement $name:ident $is_part:literal {
        $($field:ident: $type:ty $(as $wrapper:ident)? $(= $tag:literal)?,)*
    }) => {
        const _: () = {
            use $crate::history::protobuf::{Field, Message, Reader, Unreadable, message};

            #[derive(Default)]
            pub struct Slots {
                $($field: <message!(@type $type $(as $wrapper)?) as Field>::Slot,)*
            }

            impl Message for $name {
                const IS_PART: bool = $is_part;
                type Slots = Slots;

                fn merge(slots: &mut Slots, from: &mut Reader<'_>) -> Result<bool, Unreadable> {
                    $({
                        type Type = message!(@type $type $(as $wrapper)?);
                        let tag = 0 $(+ $tag)?;
                        if (tag == 0 || tag == from.tag)
                            && <Type as Field>::merge(&mut slots.$field, from)?
                        {
                            return Ok(true);
                        }
                    })*
                    Ok(false)
                }

                fn finish(slots: Slots, _name: &'static str) -> Result<Self, Unreadable> {
                    Ok(Self {
                        $($field: message! {
                            @finish $type $(as $wrapper)?, slots.$field, stringify!($field)
                        },)*
                    })
                }

                fn write(&self, to: &mut Vec<u8>) {
                    $(message!(@value self.$field $(as $wrapper)?).write_set(0 $(+ $tag)?, to);)*
                }
            }
        };
    };

    (@type $type:ty) => { $type };
    (@type $type:ty as $wrapper:ident) => { $wrapper };
    (@finish $type:ty, $slot:expr, $name:expr) => {
        <$type as Field>::finish($slot, $name)?
    };
    (@finish $type:ty as $wrapper:ident, $slot:expr, $name:expr) => {
        <$wrapper as Field>::finish($slot, $name)?.0
    };
    (@value $value:ident) => { $value };
    (@value $value:ident as $wrapper:ident) => { $wrapper($value.clone()) };
    (@value $self:ident.$field:ident) => { $self.$field };
    (@value $self:ident.$field:ident as $wrapper:ident) => { $wrapper($self.$field.clone()) };
}

/// Defines an enum as a `oneof`, with the tag of each variant, which is an empty message, a value,
/// a message of the variant's fields, or a message of the type after `in`, which has a function
/// `new` from the variant's fields and a method `open` to the variant.
macro_rules! oneof {
    ($(#[$meta:meta])* $vis:vis enum $name:ident {
        $(
            $(#[$about:meta])* $variant:ident
            $(($(#[$of_inner:meta])* $inner:ty))?
            $({$($(#[$of:meta])* $field:ident: $type:ty $(= $field_tag:literal)?),* $(,)?})?
            $(in $message:ty)?
            = $tag:literal,
        )*
    }) => {
        #[cfg_attr(test, derive(arbitrary::Arbitrary))]
        #[derive(Clone, Debug, PartialEq)]
        $(#[$meta])*
        $vis enum $name {
            $(
                $(#[$about])*
                $variant $(($(#[$of_inner])* $inner))? $({ $($(#[$of])* $field: $type,)* })?,
            )*
        }

        const _: () = {
            use $crate::history::protobuf::{Field, Message, Reader, Unreadable};

            impl Message for $name {
                const IS_PART: bool = true;
                type Slots = Option<Self>;

                fn merge(
                    slots: &mut Option<Self>,
                    from: &mut Reader<'_>,
                ) -> Result<bool, Unreadable> {
                    *slots = Some(match from.tag {
                        $($tag => $crate::history::protobuf::oneof! {
                            @read $variant from $(($inner))?
                            $({ $($field: $type $(= $field_tag)?,)* })? $(in $message)?
                        },)*
                        _ => return Ok(false),
                    });
                    Ok(true)
                }

                fn finish(slots: Option<Self>, name: &'static str) -> Result<Self, Unreadable> {
                    slots.ok_or(Unreadable::Lacks(name))
                }

                fn write(&self, to: &mut Vec<u8>) {
                    $($crate::history::protobuf::oneof! {
                        @write $variant self $tag to $(($inner))?
                        $({ $($field $(= $field_tag)?,)* })? $(in $message)?
                    })*
                }
            }
        };
    };

    (@read $variant:ident $from:ident) => {{
        $from.delimited()?;
        Self::$variant
    }};
    (@read $variant:ident $from:ident ($inner:ty)) => {{
        let mut inner = <$inner as Field>::Slot::default();
        <$inner as Field>::merge(&mut inner, $from)?;
        Self::$variant(Field::finish(inner, stringify!($variant))?)
    }};
    (@read $variant:ident $from:ident { $($field:ident: $type:ty $(= $tag:literal)?,)* }) => {{
        struct Fields {
            $($field: $type,)*
        }
        $crate::history::protobuf::message! {
            @implement Fields false { $($field: $type $(= $tag)?,)* }
        }
        let Fields { $($field),* } = <Fields as Message>::read($from.delimited()?)?;
        Self::$variant { $($field),* }
    }};
    (@read $variant:ident $from:ident $(($($inner:tt)*))? $({ $($field:tt)* })? in $message:ty) => {
        <$message as Message>::read($from.delimited()?)?.open()?
    };

    (@write $variant:ident $self:ident $tag:literal $to:ident) => {
        if let Self::$variant = $self {
            $crate::history::protobuf::write_delimited($tag, $to, |_| ());
        }
    };
    (@write $variant:ident $self:ident $tag:literal $to:ident ($inner:ty)) => {
        if let Self::$variant(inner) = $self {
            Field::write(inner, $tag, $to);
        }
    };
    (@write $variant:ident $self:ident $tag:literal $to:ident {
        $($field:ident $(= $field_tag:literal)?,)*
    }) => {
        if let Self::$variant { $($field),* } = $self {
            $crate::history::protobuf::write_delimited($tag, $to, |to| {
                $($field.write_set(0 $(+ $field_tag)?, to);)*
            });
        }
    };
    (@write $variant:ident $self:ident $tag:literal $to:ident ($inner:ty) in $message:ty) => {
        if let Self::$variant(inner) = $self {
            Field::write(&<$message>::new(inner), $tag, $to);
        }
    };
    (@write $variant:ident $self:ident $tag:literal $to:ident { $($field:ident,)* }
        in $message:ty
    ) => {
        if let Self::$variant { $($field),* } = $self {
            Field::write(&<$message>::new($($field),*), $tag, $to);
        }
    };
}

/// Defines an enum of messages, each with its name in the CRI: an empty message, a value that is
/// one field, or a message of the variant's fields. A variant without a name has none that is its
/// own, and is read and written elsewhere.
macro_rules! messages {
    ($(#[$meta:meta])* $vis:vis enum $name:ident {
        $(
            $(#[$about:meta])* $variant:ident
            $(($inner:ty $(as $wrapper:ident)? $(= $tag:literal)? $(, $second:ty)?))?
            $({
                $(
                    $(#[$of:meta])*
                    $field:ident: $type:ty $(as $as:ident)? $(= $field_tag:literal)?
                ),*
                $(,)?
            })?
            $(: $message:literal)?,
        )*
    }) => {
        #[cfg_attr(test, derive(arbitrary::Arbitrary))]
        #[derive(Clone, Debug, PartialEq)]
        $(#[$meta])*
        $vis enum $name {
            $(
                $(#[$about])*
                $variant $(($inner $(, $second)?))? $({ $($(#[$of])* $field: $type,)* })?,
            )*
        }

        const _: () = {
            use $crate::history::protobuf::{Field, Message, Unreadable, message, messages};

            impl $name {
                /// The name of its message; none if it is written elsewhere.
                pub fn name(&self) -> Option<&'static str> {
                    $($(if let Self::$variant { .. } = self {
                        return Some($message);
                    })?)*
                    None
                }

                /// Reads the message of this name; none if that is read elsewhere.
                pub fn read(name: &str, bytes: &[u8]) -> Result<Option<Self>, Unreadable> {
                    $(messages! {
                        @read $variant name bytes $($message)?
                        $(($inner $(as $wrapper)? $(= $tag)?))?
                        $({ $($field: $type $(as $as)? $(= $field_tag)?,)* })?
                    })*
                    Ok(None)
                }

                /// Its message; empty if it is written elsewhere.
                pub fn to_bytes(&self) -> Vec<u8> {
                    let mut to = Vec::new();
                    $(messages! {
                        @write $variant self to $($message)? $(($inner $(as $wrapper)? $(= $tag)?))?
                        $({ $($field $(as $as)? $(= $field_tag)?,)* })?
                    })*
                    to
                }
            }
        };
    };

    (@read $variant:ident $name:ident $bytes:ident $message:literal) => {
        if $name == $message {
            <() as prost::Message>::decode($bytes)?;
            return Ok(Some(Self::$variant));
        }
    };
    (@read $variant:ident $name:ident $bytes:ident $message:literal
        ($inner:ty $(as $wrapper:ident)? $(= $tag:literal)?)
    ) => {
        if $name == $message {
            struct Fields {
                value: $inner,
            }
            message!(@implement Fields false { value: $inner $(as $wrapper)? $(= $tag)?, });
            let message = <Fields as Message>::read($bytes)?;
            return Ok(Some(Self::$variant(message.value)));
        }
    };
    (@read $variant:ident $name:ident $bytes:ident $message:literal {
        $($field:ident: $type:ty $(as $as:ident)? $(= $field_tag:literal)?,)*
    }) => {
        if $name == $message {
            struct Fields {
                $($field: $type,)*
            }
            message! {
                @implement Fields false { $($field: $type $(as $as)? $(= $field_tag)?,)* }
            }
            let Fields { $($field),* } = <Fields as Message>::read($bytes)?;
            return Ok(Some(Self::$variant { $($field),* }));
        }
    };
    (@read $variant:ident $name:ident $bytes:ident $($rest:tt)*) => {};

    (@write $variant:ident $self:ident $to:ident $message:literal
        ($inner:ty $(as $wrapper:ident)? $(= $tag:literal)?)
    ) => {
        if let Self::$variant(value) = $self {
            message!(@value value $(as $wrapper)?).write_set(0 $(+ $tag)?, &mut $to);
        }
    };
    (@write $variant:ident $self:ident $to:ident $message:literal {
        $($field:ident $(as $as:ident)? $(= $field_tag:literal)?,)*
    }) => {
        if let Self::$variant { $($field),* } = $self {
            $(message!(@value $field $(as $as)?).write_set(0 $(+ $field_tag)?, &mut $to);)*
        }
    };
    (@write $variant:ident $self:ident $to:ident $($rest:tt)*) => {};
}

/// Defines an enum of the CRI: the number and the name of each variant, and `Unknown` for all other
/// numbers.
macro_rules! numbers {
    ($(#[$meta:meta])* $vis:vis enum $name:ident {
        $($(#[$about:meta])* $variant:ident = $number:literal $text:literal,)*
    }) => {
        #[cfg_attr(test, derive(arbitrary::Arbitrary))]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $(#[$meta])*
        $vis enum $name {
            $($(#[$about])* $variant,)*
            /// A number that has no name here.
            Unknown(#[cfg_attr(test, arbitrary(with = $crate::history::any::undefined))] i32),
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $(Self::$variant => f.write_str($text),)*
                    Self::Unknown(number) => write!(f, "UNKNOWN({number})"),
                }
            }
        }

        impl From<i32> for $name {
            fn from(number: i32) -> Self {
                match number {
                    $($number => Self::$variant,)*
                    number => Self::Unknown(number),
                }
            }
        }

        impl From<$name> for i32 {
            fn from(kind: $name) -> Self {
                match kind {
                    $($name::$variant => $number,)*
                    $name::Unknown(number) => number,
                }
            }
        }

        $crate::history::protobuf::written_as! {
            $name as i32 { |kind| i32::from(*kind), |number| Ok($name::from(number)) }
        }
    };
}

/// Defines how values of a type are written: as another type, by a function to that and one from
/// that.
macro_rules! written_as {
    ($($type:ty as $wire:ty { |$value:ident| $to_wire:expr, |$read:ident| $of_wire:expr })*) => {
        $(const _: () = {
            use $crate::history::protobuf::{Field, Reader, Unreadable};

            impl Field for $type {
                type Slot = <$wire as Field>::Slot;

                fn merge(
                    slot: &mut Self::Slot,
                    from: &mut Reader<'_>,
                ) -> Result<bool, Unreadable> {
                    <$wire as Field>::merge(slot, from)
                }

                fn finish(slot: Self::Slot, name: &'static str) -> Result<Self, Unreadable> {
                    let $read = <$wire as Field>::finish(slot, name)?;
                    $of_wire
                }

                fn is_default(&self) -> bool {
                    let $value = self;
                    let wire: $wire = $to_wire;
                    wire.is_default()
                }

                fn write(&self, tag: u32, to: &mut Vec<u8>) {
                    let $value = self;
                    let wire: $wire = $to_wire;
                    wire.write(tag, to);
                }
            }
        };)*
    };
}

pub(in crate::history) use {message, messages, numbers, oneof, written_as};
