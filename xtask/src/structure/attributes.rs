//! Which code is compiled for tests only.

use syn::punctuated::Punctuated;
use syn::{Attribute, Item, Meta, Token};

/// Whether the code under this attribute is part of a test, and of nothing else.
pub(crate) fn is_of_test(attribute: &Attribute) -> bool {
    let path = attribute.path();
    if path.is_ident("cfg") {
        return attribute
            .parse_args::<Meta>()
            .is_ok_and(|condition| needs_test(&condition));
    }
    // `#[test]`, `#[tokio::test]`.
    let last = path.segments.last();
    last.is_some_and(|segment| segment.ident == "test")
}

/// Whether a condition of a `cfg` holds in a build of the tests only.
fn needs_test(condition: &Meta) -> bool {
    let parts = || match condition {
        Meta::List(list) => list
            .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
            .unwrap_or_default(),
        _ => Punctuated::new(),
    };
    let path = condition.path();
    if path.is_ident("all") {
        parts().iter().any(needs_test)
    } else if path.is_ident("any") {
        !parts().is_empty() && parts().iter().all(needs_test)
    } else {
        path.is_ident("test")
    }
}

/// The attributes of an item.
pub(crate) fn of_item(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
