//! `cargo xtask structure`: no circle between source files.
//!
//! An arrow leads from a file to each file that defines an item that the first file names. The name
//! is in a `use`, in a path inside its code, or in the arguments of a macro. A name that a module
//! re-exports counts for the file that defines it. A `mod` is no arrow, and neither is a re-export.
//! Tests, modules for tests and doc comments do not count, and neither do names that a macro defines.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fs, io, mem};

use anyhow::{Context, bail, ensure};
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Expr, ExprLit, Ident, Item, ItemMod, Lit, Meta, UseTree, Visibility};

use crate::cargo::{packages, root};

/// How many imports may lead from one to the next. More of them lead in a circle.
const MAX_IMPORTS: u8 = 8;

/// Checks every target of the workspace.
pub(crate) fn run() -> anyhow::Result<()> {
    let root = root();
    let read = |path: &Path| fs::read_to_string(root.join(path));
    // A file may be part of several targets, and is reported once.
    let (mut files, mut circles) = (BTreeSet::new(), BTreeSet::new());
    let packages = packages()?;
    let members = packages.iter().filter(|package| package.is_of_workspace());
    for target in members.flat_map(|package| &package.targets) {
        let path = target.src_path.strip_prefix(&root);
        let target = Target::read(path.unwrap_or(&target.src_path), &read)?;
        circles.extend(target.circles());
        files.extend(target.files);
    }
    let arrows = Vec::from_iter(circles).join("\n");
    ensure!(arrows.is_empty(), "circles between files:\n{arrows}");
    println!("{} files, no circle", files.len());
    Ok(())
}

/// The names between the colons of a path.
type Names = Vec<String>;
type Read<'r> = &'r dyn Fn(&Path) -> io::Result<String>;

/// A crate. The first one of its modules is the root.
#[derive(Default)]
struct Target {
    files: Vec<PathBuf>,
    modules: Vec<Module>,
}

/// A module, in a file of its own or in its parent's, without the modules inside it.
struct Module {
    /// The place in [`Target::files`].
    file: usize,
    parent: usize,
    children: BTreeMap<String, usize>,
    names: Vec<(String, Meaning)>,
    /// The paths whose names this module imports all at once.
    globs: Vec<Names>,
    /// Each path that the code of this module takes. A re-export alone takes nothing.
    taken: Vec<Names>,
}

#[derive(Clone)]
enum Meaning {
    Defined,
    Imported(Names),
}

#[derive(Clone, Copy)]
enum Found {
    Module(usize),
    InFile(usize),
}

impl Target {
    fn read(path: &Path, read: Read<'_>) -> anyhow::Result<Target> {
        let mut target = Target::default();
        let directory = path.parent().unwrap_or(Path::new(""));
        target.add_file(path, directory, 0, read)?;
        Ok(target)
    }

    fn add_file(
        &mut self,
        path: &Path,
        directory: &Path,
        parent: usize,
        read: Read<'_>,
    ) -> anyhow::Result<usize> {
        let text = read(path).with_context(|| path.display().to_string())?;
        let parsed = syn::parse_file(&text).with_context(|| path.display().to_string())?;
        self.files.push(path.to_owned());
        self.add_module(&parsed.items, self.files.len() - 1, directory, parent, read)
    }

    /// Adds a module and the modules inside it, whose files are in `directory`.
    fn add_module(
        &mut self,
        items: &[Item],
        file: usize,
        directory: &Path,
        parent: usize,
        read: Read<'_>,
    ) -> anyhow::Result<usize> {
        let mut source = Source::default();
        items.iter().for_each(|item| source.visit_item(item));
        let place = self.modules.len();
        self.modules.push(Module {
            file,
            parent,
            children: BTreeMap::new(),
            names: source.names,
            globs: source.globs,
            taken: source.taken,
        });
        for module in source.modules {
            let name = module.ident.to_string();
            let inside = directory.join(&name);
            let own_path = module.attrs.iter().find_map(named_path);
            let child = if let Some((_, items)) = &module.content {
                self.add_module(items, file, &inside, place, read)?
            } else if let Some(path) = own_path {
                let path = self.files[file].with_file_name(path);
                let directory = path.parent().unwrap_or(Path::new(""));
                self.add_file(&path, directory, place, read)?
            } else {
                let files = [inside.with_extension("rs"), inside.join("mod.rs")];
                let Some(path) = files.iter().find(|path| read(path).is_ok()) else {
                    bail!("there is neither {} nor mod.rs in it", inside.display());
                };
                self.add_file(path, &inside, place, read)?
            };
            self.modules[place].children.insert(name, child);
        }
        Ok(place)
    }

    /// The arrows that are part of a circle, as text.
    fn circles(&self) -> Vec<String> {
        let arrows = self.arrows();
        let leads = |from: usize, to: usize| {
            let (mut reached, mut ahead) = (BTreeSet::new(), vec![from]);
            while let Some(file) = ahead.pop() {
                let next = arrows.keys().filter(|(from, _)| *from == file);
                ahead.extend(next.map(|(_, to)| *to).filter(|to| reached.insert(*to)));
            }
            reached.contains(&to)
        };
        let circles = arrows.iter().filter(|((from, to), _)| leads(*to, *from));
        let lines = circles.map(|((from, to), names)| {
            let [from, to] = [from, to].map(|file| self.files[*file].display());
            let names = Vec::from_iter(names.iter().map(String::as_str));
            format!("  {from} -> {to}: {}", names.join(", "))
        });
        lines.collect()
    }

    /// Which file takes which names from which other file.
    fn arrows(&self) -> BTreeMap<(usize, usize), BTreeSet<String>> {
        let mut arrows: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
        for (place, module) in self.modules.iter().enumerate() {
            for path in &module.taken {
                // The path may continue behind the item, to a variant or to a function of it.
                let mut beginnings = (1..=path.len()).map(|end| &path[..end]);
                let found = beginnings.find_map(|path| {
                    match self.resolve(place, path, true, MAX_IMPORTS)? {
                        Found::InFile(file) => Some((file, path.last()?.clone())),
                        Found::Module(_) => None,
                    }
                });
                if let Some((file, name)) = found.filter(|(file, _)| *file != module.file) {
                    arrows.entry((module.file, file)).or_default().insert(name);
                }
            }
        }
        arrows
    }

    /// What a path leads to. `None` leads out of the crate.
    fn resolve(&self, module: usize, path: &[String], is_start: bool, left: u8) -> Option<Found> {
        let Some((first, rest)) = path.split_first() else {
            return Some(Found::Module(module));
        };
        let next = match first.as_str() {
            "crate" if is_start => 0,
            "self" if is_start => module,
            "super" => self.modules[module].parent,
            name => match self.look_up(module, name, !rest.is_empty(), left)? {
                Found::Module(inside) => inside,
                found @ Found::InFile(_) => return Some(found),
            },
        };
        self.resolve(next, rest, false, left)
    }

    /// What a name means in a module. A module and an item may share a name: the path means the
    /// module if it continues behind the name.
    fn look_up(&self, module: usize, name: &str, continues: bool, left: u8) -> Option<Found> {
        let left = left.checked_sub(1)?;
        let here = &self.modules[module];
        let child = here.children.get(name).copied().map(Found::Module);
        let meant = here
            .names
            .iter()
            .find_map(|(named, meaning)| match meaning {
                _ if named != name => None,
                Meaning::Defined => Some(Found::InFile(here.file)),
                Meaning::Imported(path) => self.resolve(module, path, true, left),
            });
        let of_globs = || {
            let mut globs = here.globs.iter();
            globs.find_map(|glob| match self.resolve(module, glob, true, left)? {
                Found::Module(all) if all != module => self.look_up(all, name, continues, left),
                // The variants of an enum: the module takes the glob itself.
                _ => None,
            })
        };
        child
            .filter(|_| continues)
            .or(meant)
            .or(child)
            .or_else(of_globs)
    }
}

/// The path in an attribute `#[path = "…"]`.
fn named_path(attribute: &syn::Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(meta) if meta.path.is_ident("path") => match &meta.value {
            Expr::Lit(ExprLit {
                lit: Lit::Str(path),
                ..
            }) => Some(path.value()),
            _ => None,
        },
        _ => None,
    }
}

#[derive(Default)]
struct Source<'s> {
    names: Vec<(String, Meaning)>,
    globs: Vec<Names>,
    taken: Vec<Names>,
    modules: Vec<&'s ItemMod>,
}

impl Source<'_> {
    fn import(&mut self, mut path: Names, tree: &UseTree, is_taken: bool) {
        let (ident, name) = match tree {
            UseTree::Path(tree) => {
                path.push(tree.ident.to_string());
                return self.import(path, &tree.tree, is_taken);
            }
            UseTree::Group(group) => {
                let trees = group.items.iter();
                return trees.for_each(|tree| self.import(path.clone(), tree, is_taken));
            }
            UseTree::Glob(_) => {
                self.taken.extend(is_taken.then(|| path.clone()));
                return self.globs.push(path);
            }
            UseTree::Name(tree) => (&tree.ident, None),
            UseTree::Rename(tree) => (&tree.ident, Some(&tree.rename)),
        };
        // `use path::{self}` imports the path itself.
        if ident != "self" || path.is_empty() {
            path.push(ident.to_string());
        }
        let name = name.map(Ident::to_string).or_else(|| path.last().cloned());
        self.taken.extend(is_taken.then(|| path.clone()));
        let name = name.unwrap_or_default();
        self.names.push((name, Meaning::Imported(path)));
    }

    /// Takes every path in the arguments of a macro.
    fn tokens(&mut self, tokens: TokenStream) {
        let (mut path, mut colons) = (Names::new(), 0);
        for token in tokens {
            match token {
                TokenTree::Punct(colon) if colon.as_char() == ':' => colons += 1,
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.taken.push(mem::take(&mut path));
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                other => {
                    self.taken.push(mem::take(&mut path));
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.tokens(group.stream());
                    }
                }
            }
        }
        self.taken.push(path);
    }
}

impl<'s> Visit<'s> for Source<'s> {
    fn visit_item(&mut self, item: &'s Item) {
        let name = match item {
            Item::Const(item) => Some(&item.ident),
            Item::Enum(item) => Some(&item.ident),
            Item::Fn(item) => Some(&item.sig.ident),
            Item::Macro(item) => item.ident.as_ref(),
            Item::Static(item) => Some(&item.ident),
            Item::Struct(item) => Some(&item.ident),
            Item::Trait(item) => Some(&item.ident),
            Item::Type(item) => Some(&item.ident),
            Item::Union(item) => Some(&item.ident),
            _ => None,
        };
        let name = name.map(Ident::to_string);
        self.names.extend(name.map(|name| (name, Meaning::Defined)));
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, module: &'s ItemMod) {
        let is_for_tests = module.attrs.iter().any(|attribute| {
            let condition = attribute.parse_args::<Ident>();
            attribute.path().is_ident("cfg") && condition.is_ok_and(|name| name == "test")
        });
        self.modules.extend((!is_for_tests).then_some(module));
    }

    // `#[test]` and `#[tokio::test]`.
    fn visit_item_fn(&mut self, function: &'s syn::ItemFn) {
        let mut names = function.attrs.iter().map(|it| it.path().segments.last());
        if !names.any(|last| last.is_some_and(|it| it.ident == "test")) {
            visit::visit_item_fn(self, function);
        }
    }

    fn visit_item_use(&mut self, item: &'s syn::ItemUse) {
        if item.leading_colon.is_none() {
            let is_taken = matches!(item.vis, Visibility::Inherited);
            self.import(Names::new(), &item.tree, is_taken);
        }
    }

    fn visit_path(&mut self, path: &'s syn::Path) {
        if path.leading_colon.is_none() {
            let names = path.segments.iter();
            let names = names.map(|segment| segment.ident.to_string());
            self.taken.push(names.collect());
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

#[cfg(test)]
#[path = "../tests/unit/structure.rs"]
mod tests;
