//! What one module says: the names that it defines and imports, and the paths that it takes.

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Ident, ImplItem, Item, ItemMod, UseTree, Visibility};

use super::attributes;

/// The names between the colons of a path.
pub(crate) type Path = Vec<String>;

/// The text of one module, without test code and without the modules inside it.
#[derive(Default)]
pub(crate) struct Source<'s> {
    /// Each name that this module defines or imports.
    pub(crate) names: Vec<(String, Meaning)>,
    /// The paths whose names this module imports all at once.
    pub(crate) globs: Vec<Path>,
    /// Each path that the code of this module takes. A re-export alone takes nothing.
    pub(crate) taken: Vec<Path>,
    /// The modules inside this one.
    pub(crate) modules: Vec<&'s ItemMod>,
}

/// What a name means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// The module defines it.
    Defined,
    /// The module imports it by this path.
    Imported(Path),
}

impl<'s> Source<'s> {
    pub(crate) fn of(items: &'s [Item]) -> Source<'s> {
        let mut source = Source::default();
        for item in items {
            source.visit_item(item);
        }
        source
    }

    fn import(&mut self, prefix: &Path, tree: &UseTree, is_taken: bool) {
        let extended = |ident: &Ident| {
            let mut path = prefix.clone();
            // `use path::{self}` imports the path itself.
            if ident != "self" || prefix.is_empty() {
                path.push(ident.to_string());
            }
            path
        };
        match tree {
            UseTree::Path(path) => self.import(&extended(&path.ident), &path.tree, is_taken),
            UseTree::Name(name) => {
                let path = extended(&name.ident);
                let name = path.last().cloned().unwrap_or_default();
                self.imported(name, path, is_taken);
            }
            UseTree::Rename(rename) => {
                let name = rename.rename.to_string();
                self.imported(name, extended(&rename.ident), is_taken);
            }
            UseTree::Glob(_) => {
                self.globs.push(prefix.clone());
                self.taken.extend(is_taken.then(|| prefix.clone()));
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(prefix, tree, is_taken);
                }
            }
        }
    }

    fn imported(&mut self, name: String, path: Path, is_taken: bool) {
        if is_taken {
            self.taken.push(path.clone());
        }
        self.names.push((name, Meaning::Imported(path)));
    }

    /// Takes every path in the arguments of a macro.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path = Path::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(colon) if colon.as_char() == ':' => colons += 1,
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.taken.extend(take_unless_empty(&mut path));
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                other => {
                    self.taken.extend(take_unless_empty(&mut path));
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.tokens(group.stream());
                    }
                }
            }
        }
        self.taken.extend(take_unless_empty(&mut path));
    }
}

fn take_unless_empty(path: &mut Path) -> Option<Path> {
    (!path.is_empty()).then(|| std::mem::take(path))
}

impl<'s> Visit<'s> for Source<'s> {
    fn visit_item(&mut self, item: &'s Item) {
        if attributes::of_item(item).iter().any(attributes::is_of_test) {
            return;
        }
        let name = defined_name(item).map(Ident::to_string);
        self.names.extend(name.map(|name| (name, Meaning::Defined)));
        visit::visit_item(self, item);
    }

    fn visit_impl_item(&mut self, item: &'s ImplItem) {
        if let ImplItem::Fn(function) = item {
            if function.attrs.iter().any(attributes::is_of_test) {
                return;
            }
        }
        visit::visit_impl_item(self, item);
    }

    fn visit_item_mod(&mut self, module: &'s ItemMod) {
        self.modules.push(module);
    }

    fn visit_item_use(&mut self, item: &'s syn::ItemUse) {
        if item.leading_colon.is_none() {
            let is_taken = matches!(item.vis, Visibility::Inherited);
            self.import(&Path::new(), &item.tree, is_taken);
        }
    }

    fn visit_path(&mut self, path: &'s syn::Path) {
        if path.leading_colon.is_none() {
            let names = path.segments.iter();
            self.taken
                .push(names.map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'s syn::Macro) {
        self.tokens(called.tokens.clone());
        visit::visit_macro(self, called);
    }

    // Doc comments and other attributes take nothing, and neither does `pub(in path)`.
    fn visit_attribute(&mut self, _: &'s syn::Attribute) {}
    fn visit_visibility(&mut self, _: &'s Visibility) {}
}

fn defined_name(item: &Item) -> Option<&Ident> {
    match item {
        Item::Const(item) => Some(&item.ident),
        Item::Enum(item) => Some(&item.ident),
        Item::Fn(item) => Some(&item.sig.ident),
        Item::Macro(item) => item.ident.as_ref(),
        Item::Static(item) => Some(&item.ident),
        Item::Struct(item) => Some(&item.ident),
        Item::Trait(item) => Some(&item.ident),
        Item::TraitAlias(item) => Some(&item.ident),
        Item::Type(item) => Some(&item.ident),
        Item::Union(item) => Some(&item.ident),
        _ => None,
    }
}
