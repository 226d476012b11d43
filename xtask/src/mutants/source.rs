//! A source file as its tokens and its named items.

use std::fmt::{self, Display};
use std::ops::Range;
use std::str::FromStr;

use anyhow::{Context, bail};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    Block, Ident, ImplItem, Item, ItemImpl, ItemMod, ItemTrait, ReturnType, Signature, TraitItem,
    Type,
};

/// A source file as its tokens and its named items. Comments are no tokens.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) text: String,
    /// The bytes of each token, in order.
    tokens: Vec<Range<usize>>,
    items: Vec<Named>,
    /// The bytes of the body of each function that may have two bodies, the outer ones first.
    bodies: Vec<Range<usize>>,
}

#[derive(Debug, Clone)]
struct Named {
    /// The modules, the type and the functions that it is in, and its own name.
    path: Vec<String>,
    bytes: Range<usize>,
}

impl Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path.join("::"))
    }
}

impl Source {
    /// The call fails if this is not the text of a source file.
    pub(crate) fn new(text: String) -> anyhow::Result<Source> {
        let stream = TokenStream::from_str(&text)
            .map_err(|error| anyhow::anyhow!("it is no Rust: {error}"))?;
        let mut source = Source {
            text,
            tokens: Vec::new(),
            items: Vec::new(),
            bodies: Vec::new(),
        };
        source.push_tokens(stream.clone());
        let file: syn::File = syn::parse2(stream).context("it is no Rust")?;
        let mut items = Items::default();
        items.visit_file(&file);
        source.items = items.found;
        source.bodies = items.bodies;
        Ok(source)
    }

    fn push_tokens(&mut self, stream: TokenStream) {
        for token in stream {
            let bytes = token.span().byte_range();
            let text = &self.text[bytes.clone()];
            if text.starts_with("//") || text.starts_with("/*") {
                // A comment that documents an item is an attribute to the parser.
                continue;
            }
            match token {
                TokenTree::Group(group) if group.delimiter() != Delimiter::None => {
                    self.tokens.push(group.span_open().byte_range());
                    self.push_tokens(group.stream());
                    self.tokens.push(group.span_close().byte_range());
                }
                _ => self.tokens.push(bytes),
            }
        }
    }

    /// The bytes of the item of this name: a function, a constant or a type, such as `release`,
    /// `Grant::release` or `tests::release`. An empty name is the whole file.
    ///
    /// The call fails unless the file has exactly one.
    pub(crate) fn item(&self, name: &str) -> anyhow::Result<Range<usize>> {
        if name.is_empty() {
            return Ok(0..self.text.len());
        }
        let path: Vec<&str> = name.split("::").collect();
        let is_named = |item: &&Named| {
            let from = item.path.len().checked_sub(path.len());
            from.is_some_and(|from| item.path[from..].iter().eq(path.iter()))
        };
        let mut named: Vec<&Named> = self.items.iter().filter(is_named).collect();
        // A function of the file itself has no longer name.
        if let Some(item) = named.iter().find(|item| item.path.len() == path.len()) {
            named = vec![item];
        }
        match named[..] {
            [item] => Ok(item.bytes.clone()),
            [] => {
                let names = self.items.iter();
                let names = names.map(|item| (self.line(item.bytes.start), item.to_string()));
                bail!("no item is named {name:?} ({})", nearest(names, name))
            }
            _ => bail!("several items are named {name:?}: {}", list(named)),
        }
    }

    /// The bytes of each place in these bytes that consists of the tokens of `find`, whatever
    /// spaces, lines and comments are between them.
    pub(crate) fn places(&self, within: &Range<usize>, find: &str) -> Vec<Range<usize>> {
        let find = without_spaces(find);
        let tokens = self.tokens.iter();
        let tokens = tokens.filter(|it| within.start <= it.start && it.end <= within.end);
        let mut text = String::new();
        let mut ends = Vec::new();
        for token in tokens {
            let start = text.len();
            text.push_str(&without_spaces(&self.text[token.clone()]));
            ends.push((start, text.len(), token));
        }
        let place = |(start, _, first): &(usize, usize, &Range<usize>)| {
            let end = text[*start..]
                .starts_with(&find)
                .then(|| start + find.len())?;
            let last = ends.binary_search_by_key(&end, |(_, end, _)| *end).ok()?;
            Some(first.start..ends[last].2.end)
        };
        ends.iter().filter_map(place).collect()
    }

    /// The bytes of the body of the outermost function that has this place, with its braces.
    ///
    /// `None` if no function has the place in its body, or if the function can have one body only:
    /// a constant function, or one that returns an `impl Trait`.
    pub(crate) fn body(&self, place: &Range<usize>) -> Option<Range<usize>> {
        let has_place = |body: &&Range<usize>| body.start < place.start && place.end < body.end;
        self.bodies.iter().find(has_place).cloned()
    }

    /// The line in these bytes that is most like `find`, for an error.
    pub(crate) fn nearest_line(&self, within: &Range<usize>, find: &str) -> String {
        let first = self.line(within.start);
        let lines = self.text[within.clone()].lines().enumerate();
        let lines = lines.map(|(index, line)| (first + index, line.trim().to_owned()));
        let longest = find.lines().max_by_key(|line| line.trim().len());
        nearest(lines, longest.unwrap_or_default())
    }

    pub(crate) fn line(&self, byte: usize) -> usize {
        self.text[..byte].matches('\n').count() + 1
    }
}

/// Says which of these texts is most like this one, and its line.
fn nearest(candidates: impl Iterator<Item = (usize, String)>, to: &str) -> String {
    let likest = candidates.max_by_key(|(_, text)| likeness(text, to));
    likest.map_or_else(String::new, |(line, text)| {
        format!("nearest is line {line}: {text}")
    })
}

/// How alike two texts are, in thousandths: the pairs of characters that both have.
fn likeness(left: &str, right: &str) -> usize {
    (1_000.0 * strsim::sorensen_dice(left, right)) as usize
}

fn without_spaces(text: &str) -> String {
    text.split_whitespace().collect()
}

fn list(items: Vec<&Named>) -> String {
    let names: Vec<String> = items.iter().map(ToString::to_string).collect();
    names.join(", ")
}

/// Collects the named items of a file.
#[derive(Default)]
struct Items {
    path: Vec<String>,
    found: Vec<Named>,
    bodies: Vec<Range<usize>>,
}

impl Items {
    fn within(&mut self, name: String, visit: impl FnOnce(&mut Items)) {
        self.path.push(name);
        visit(self);
        self.path.pop();
    }

    fn add_body(&mut self, signature: &Signature, body: &Block) {
        let returns_impl = match &signature.output {
            ReturnType::Type(_, of) => matches!(**of, Type::ImplTrait(_)),
            ReturnType::Default => false,
        };
        if signature.constness.is_none() && !returns_impl {
            self.bodies.push(body.span().byte_range());
        }
    }

    fn add(&mut self, name: &Ident, item: &impl Spanned, visit: impl FnOnce(&mut Items)) {
        self.within(name.to_string(), |items| {
            items.found.push(Named {
                path: items.path.clone(),
                bytes: item.span().byte_range(),
            });
            visit(items);
        });
    }
}

impl<'s> Visit<'s> for Items {
    fn visit_item(&mut self, item: &'s Item) {
        let name = match item {
            Item::Const(item) => &item.ident,
            Item::Enum(item) => &item.ident,
            Item::Fn(item) => {
                self.add_body(&item.sig, &item.block);
                &item.sig.ident
            }
            Item::Static(item) => &item.ident,
            Item::Struct(item) => &item.ident,
            Item::Type(item) => &item.ident,
            _ => return visit::visit_item(self, item),
        };
        self.add(name, item, |items| visit::visit_item(items, item));
    }

    fn visit_impl_item(&mut self, item: &'s ImplItem) {
        let name = match item {
            ImplItem::Const(item) => &item.ident,
            ImplItem::Fn(item) => {
                self.add_body(&item.sig, &item.block);
                &item.sig.ident
            }
            _ => return,
        };
        self.add(name, item, |items| visit::visit_impl_item(items, item));
    }

    fn visit_trait_item(&mut self, item: &'s TraitItem) {
        if let TraitItem::Fn(function) = item {
            if let Some(body) = &function.default {
                self.add_body(&function.sig, body);
            }
            let name = &function.sig.ident;
            self.add(name, item, |items| visit::visit_trait_item(items, item));
        }
    }

    fn visit_item_mod(&mut self, module: &'s ItemMod) {
        let name = module.ident.to_string();
        self.within(name, |items| visit::visit_item_mod(items, module));
    }

    fn visit_item_trait(&mut self, item: &'s ItemTrait) {
        let name = item.ident.to_string();
        self.within(name, |items| visit::visit_item_trait(items, item));
    }

    fn visit_item_impl(&mut self, item: &'s ItemImpl) {
        let name = type_name(&item.self_ty);
        self.within(name, |items| visit::visit_item_impl(items, item));
    }
}

/// The name of a type without its path and its parameters.
fn type_name(of: &Type) -> String {
    match of {
        Type::Path(path) => {
            let last = path.path.segments.last();
            last.map_or_else(String::new, |segment| segment.ident.to_string())
        }
        Type::Reference(reference) => type_name(&reference.elem),
        _ => String::new(),
    }
}
