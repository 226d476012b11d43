//! The modules of a crate, each with its file.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use syn::{Expr, Item, ItemMod, Lit, Meta};

use super::source::{self, Meaning, Source};

/// Reads a file.
pub(crate) type Read<'r> = &'r dyn Fn(&Path) -> io::Result<String>;

/// All modules of a crate, without test modules.
#[derive(Debug, Default)]
pub(crate) struct Modules {
    pub(crate) files: Vec<PathBuf>,
    /// The first one is the root.
    pub(crate) modules: Vec<Module>,
}

/// A module, in a file of its own or in its parent's.
#[derive(Debug)]
pub(crate) struct Module {
    /// The place of its file in [`Modules::files`].
    pub(crate) file: usize,
    pub(crate) parent: Option<usize>,
    pub(crate) children: Vec<(String, usize)>,
    pub(crate) names: Vec<(String, Meaning)>,
    pub(crate) globs: Vec<source::Path>,
    pub(crate) taken: Vec<source::Path>,
}

impl Modules {
    /// Reads a crate, from its root file on.
    pub(crate) fn read(root: &Path, read: Read<'_>) -> anyhow::Result<Modules> {
        let mut modules = Modules::default();
        let directory = root.parent().unwrap_or(Path::new(""));
        modules.add_file(root.to_owned(), directory, None, read)?;
        Ok(modules)
    }

    fn add_file(
        &mut self,
        path: PathBuf,
        directory: &Path,
        parent: Option<usize>,
        read: Read<'_>,
    ) -> anyhow::Result<usize> {
        let text = read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let parsed = syn::parse_file(&text)
            .map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
        self.files.push(path);
        let file = self.files.len() - 1;
        self.add_module(&parsed.items, file, directory, parent, read)
    }

    /// Adds a module and the modules inside it, whose files are in `directory`.
    fn add_module(
        &mut self,
        items: &[Item],
        file: usize,
        directory: &Path,
        parent: Option<usize>,
        read: Read<'_>,
    ) -> anyhow::Result<usize> {
        let source = Source::of(items);
        let place = self.modules.len();
        self.modules.push(Module {
            file,
            parent,
            children: Vec::new(),
            names: source.names,
            globs: source.globs,
            taken: source.taken,
        });
        for inside in source.modules {
            let name = inside.ident.to_string();
            let child = match &inside.content {
                Some((_, items)) => {
                    let directory = directory.join(&name);
                    self.add_module(items, file, &directory, Some(place), read)?
                }
                None => {
                    let (path, directory) = self.file_of(inside, file, directory, read)?;
                    self.add_file(path, &directory, Some(place), read)?
                }
            };
            self.modules[place].children.push((name, child));
        }
        Ok(place)
    }

    /// The file of a module in a file of its own, and the directory of the modules
    /// inside it.
    fn file_of(
        &self,
        module: &ItemMod,
        declared_in: usize,
        directory: &Path,
        read: Read<'_>,
    ) -> anyhow::Result<(PathBuf, PathBuf)> {
        let name = module.ident.to_string();
        let directory_of = |file: &Path| file.parent().unwrap_or(Path::new("")).to_owned();
        if let Some(named) = named_path(module) {
            let file = directory_of(&self.files[declared_in]).join(named);
            let directory = directory_of(&file);
            return Ok((file, directory));
        }
        let inside = directory.join(&name);
        for file in [directory.join(format!("{name}.rs")), inside.join("mod.rs")] {
            if read(&file).is_ok() {
                return Ok((file, inside));
            }
        }
        let declared_in = self.files[declared_in].display();
        bail!("module {name} of {declared_in} has no file");
    }
}

/// The path in an attribute `#[path = "…"]`.
fn named_path(module: &ItemMod) -> Option<String> {
    module.attrs.iter().find_map(|attribute| {
        let Meta::NameValue(meta) = &attribute.meta else {
            return None;
        };
        match &meta.value {
            Expr::Lit(literal) if meta.path.is_ident("path") => match &literal.lit {
                Lit::Str(path) => Some(path.value()),
                _ => None,
            },
            _ => None,
        }
    })
}
