//! From a path in a module to the file that defines what the path leads to.

use super::modules::Modules;
use super::source::Meaning;

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Module(usize),
    /// Something that is defined in this file.
    InFile(usize),
}

/// Why a path leads to nothing.
enum Missing {
    /// No module of the crate has the name.
    Unknown,
    /// Another crate may have the name.
    InAnotherCrate,
}

/// How many imports may lead from one to the next. More of them lead in a circle.
const MOST_IMPORTS: u8 = 8;

impl Modules {
    /// The file that defines what a path, taken in a module, leads to.
    ///
    /// `None` if the path leads to a module, or out of the crate.
    pub(crate) fn defining_file(&self, module: usize, path: &[String]) -> Option<usize> {
        match self.resolve(module, path, MOST_IMPORTS) {
            Ok(Found::InFile(file)) => Some(file),
            _ => None,
        }
    }

    fn resolve(&self, module: usize, path: &[String], imports_left: u8) -> Result<Found, Missing> {
        let Some((first, rest)) = path.split_first() else {
            return Ok(Found::Module(module));
        };
        match first.as_str() {
            "crate" => self.walk(0, rest, imports_left),
            "self" => self.walk(module, rest, imports_left),
            "super" => self.walk(module, path, imports_left),
            _ => match self.look_up(module, first, !rest.is_empty(), imports_left)? {
                Found::Module(inside) => self.walk(inside, rest, imports_left),
                found => Ok(found),
            },
        }
    }

    /// Follows a path that begins inside a module. A name that no module of the crate has is taken
    /// for the work of a macro in the last module of the path.
    fn walk(&self, module: usize, path: &[String], imports_left: u8) -> Result<Found, Missing> {
        let Some((first, rest)) = path.split_first() else {
            return Ok(Found::Module(module));
        };
        if first == "super" {
            let parent = self.modules[module].parent.ok_or(Missing::Unknown)?;
            return self.walk(parent, rest, imports_left);
        }
        match self.look_up(module, first, !rest.is_empty(), imports_left) {
            Ok(Found::Module(inside)) => self.walk(inside, rest, imports_left),
            Ok(found) => Ok(found),
            Err(Missing::Unknown) => Ok(Found::InFile(self.modules[module].file)),
            Err(Missing::InAnotherCrate) => Err(Missing::InAnotherCrate),
        }
    }

    /// What a name means in a module. A module and an item may share a name: the module is meant if
    /// the path continues behind it.
    fn look_up(
        &self,
        module: usize,
        name: &str,
        goes_on: bool,
        imports_left: u8,
    ) -> Result<Found, Missing> {
        let Some(imports_left) = imports_left.checked_sub(1) else {
            return Err(Missing::InAnotherCrate);
        };
        let here = &self.modules[module];
        let child = here.children.iter().find(|(child, _)| child == name);
        let child = child.map(|(_, child)| Found::Module(*child));
        if let Some(child) = child.filter(|_| goes_on) {
            return Ok(child);
        }
        let mut missing = Missing::Unknown;
        for (_, meaning) in here.names.iter().filter(|(meant, _)| meant == name) {
            let found = match meaning {
                Meaning::Defined => Ok(Found::InFile(here.file)),
                Meaning::Imported(path) => self.resolve(module, path, imports_left),
            };
            match found {
                Ok(found) => return Ok(found),
                Err(_) => missing = Missing::InAnotherCrate,
            }
        }
        if let Some(child) = child {
            return Ok(child);
        }
        match self.look_up_in_globs(module, name, goes_on, imports_left) {
            Err(Missing::Unknown) => Err(missing),
            found => found,
        }
    }

    /// What a name means in the modules whose names a module imports all at once.
    fn look_up_in_globs(
        &self,
        module: usize,
        name: &str,
        goes_on: bool,
        imports_left: u8,
    ) -> Result<Found, Missing> {
        let mut missing = Missing::Unknown;
        for glob in &self.modules[module].globs {
            let found = match self.resolve(module, glob, imports_left) {
                Ok(Found::Module(all)) if all != module => {
                    self.look_up(all, name, goes_on, imports_left)
                }
                // The variants of an enum: the glob itself has been taken.
                Ok(_) => Err(Missing::Unknown),
                Err(_) => Err(Missing::InAnotherCrate),
            };
            match found {
                Ok(found) => return Ok(found),
                Err(Missing::InAnotherCrate) => missing = Missing::InAnotherCrate,
                Err(Missing::Unknown) => {}
            }
        }
        Err(missing)
    }
}
