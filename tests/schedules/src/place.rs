//! Where the recipes are in the tree.

/// Where a recipe is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) path: &'static str,
    /// The znode that is written to under the guard of its holds.
    pub(crate) guarded: &'static str,
}

/// Of the recipe under test.
pub(crate) const UNDER_TEST: Place = Place {
    path: "/recipe/under-test",
    guarded: "/guarded",
};

/// Of the lock that is acquired together with it.
pub(crate) const BESIDE: Place = Place {
    path: "/recipe/beside",
    guarded: "/guarded-beside",
};
