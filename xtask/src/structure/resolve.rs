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

/// A name that is being looked up, and the look-ups that need it. Imports that lead in a circle
/// need a name that is being looked up already.
#[derive(Clone, Copy)]
struct LookUp<'l> {
    module: usize,
    name: &'l str,
    goes_on: bool,
    needed_by: Option<&'l LookUp<'l>>,
}

impl LookUp<'_> {
    fn leads_in_a_circle(&self) -> bool {
        let key = |it: &LookUp<'_>| (it.module, it.name.to_owned(), it.goes_on);
        let mut outer = self.needed_by;
        while let Some(look_up) = outer {
            if key(look_up) == key(self) {
                return true;
            }
            outer = look_up.needed_by;
        }
        false
    }
}

impl Modules {
    /// The file that defines what a path, taken in a module, leads to.
    ///
    /// `None` if the path leads to a module, or out of the crate.
    pub(crate) fn defining_file(&self, module: usize, path: &[String]) -> Option<usize> {
        match self.resolve(module, path, None) {
            Ok(Found::InFile(file)) => Some(file),
            _ => None,
        }
    }

    fn resolve(
        &self,
        module: usize,
        path: &[String],
        needed_by: Option<&LookUp<'_>>,
    ) -> Result<Found, Missing> {
        let Some((first, rest)) = path.split_first() else {
            return Ok(Found::Module(module));
        };
        match first.as_str() {
            "crate" => self.walk(0, rest, needed_by),
            "self" => self.walk(module, rest, needed_by),
            "super" => self.walk(module, path, needed_by),
            _ => match self.look_up(module, first, !rest.is_empty(), needed_by)? {
                Found::Module(inside) => self.walk(inside, rest, needed_by),
                found => Ok(found),
            },
        }
    }

    /// Follows a path that begins inside a module. A name that no module of the crate has is taken
    /// for the work of a macro in the last module of the path.
    fn walk(
        &self,
        module: usize,
        path: &[String],
        needed_by: Option<&LookUp<'_>>,
    ) -> Result<Found, Missing> {
        let Some((first, rest)) = path.split_first() else {
            return Ok(Found::Module(module));
        };
        if first == "super" {
            let parent = self.modules[module].parent.ok_or(Missing::Unknown)?;
            return self.walk(parent, rest, needed_by);
        }
        match self.look_up(module, first, !rest.is_empty(), needed_by) {
            Ok(Found::Module(inside)) => self.walk(inside, rest, needed_by),
            Ok(found) => Ok(found),
            Err(Missing::Unknown) => Ok(Found::InFile(self.modules[module].file)),
            Err(Missing::InAnotherCrate) => Err(Missing::InAnotherCrate),
        }
    }

    /// What a name stands for in a module. A module and an item may share a name: the module is
    /// meant if the path goes on behind it.
    fn look_up(
        &self,
        module: usize,
        name: &str,
        goes_on: bool,
        needed_by: Option<&LookUp<'_>>,
    ) -> Result<Found, Missing> {
        let this = LookUp {
            module,
            name,
            goes_on,
            needed_by,
        };
        if this.leads_in_a_circle() {
            return Err(Missing::InAnotherCrate);
        }
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
                Meaning::Imported(path) => self.resolve(module, path, Some(&this)),
            };
            match found {
                Ok(found) => return Ok(found),
                Err(_) => missing = Missing::InAnotherCrate,
            }
        }
        if let Some(child) = child {
            return Ok(child);
        }
        match self.look_up_in_globs(&this) {
            Err(Missing::Unknown) => Err(missing),
            found => found,
        }
    }

    /// What a name stands for in the modules whose names a module imports all at once.
    fn look_up_in_globs(&self, this: &LookUp<'_>) -> Result<Found, Missing> {
        let mut missing = Missing::Unknown;
        for glob in &self.modules[this.module].globs {
            let found = match self.resolve(this.module, glob, Some(this)) {
                Ok(Found::Module(all)) if all != this.module => {
                    self.look_up(all, this.name, this.goes_on, Some(this))
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
