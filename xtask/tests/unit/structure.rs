//! Tests of `src/structure.rs`, on small trees.

use super::*;

/// The arrows of circles in a crate of these files, whose root is the first.
fn circles(files: &[(&str, &str)]) -> Vec<String> {
    let read = |path: &Path| {
        let mut files = files.iter();
        let file = files.find(|(file, _)| Path::new(file) == path);
        let text = file.map(|(_, text)| (*text).to_owned());
        text.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    };
    let target = Target::read(Path::new(files[0].0), &read);
    target.expect("the crate can be read").circles()
}

#[test]
fn circle_is_named_with_what_its_files_take() {
    let mut files = [
        ("src/lib.rs", "mod room; mod last; use room::a::A;"),
        ("src/room/mod.rs", "pub mod a; mod b; mod c;"),
        (
            "src/room/a.rs",
            "use super::b::{B, put as set}; pub struct A;",
        ),
        (
            "src/room/b.rs",
            "use super::c::C; pub struct B; pub fn put() {}",
        ),
        ("src/room/c.rs", "use crate::room::a::A; pub struct C;"),
        ("src/last.rs", "use crate::room::a::A;"),
    ];
    assert_eq!(
        circles(&files),
        [
            "  src/room/a.rs -> src/room/b.rs: B, put",
            "  src/room/b.rs -> src/room/c.rs: C",
            "  src/room/c.rs -> src/room/a.rs: A",
        ]
    );
    files[4].1 = "pub struct C;";
    assert!(circles(&files).is_empty());
}

#[test]
fn every_way_to_name_an_item_of_another_file_counts_and_nothing_else() {
    let second = "use crate::first::First; pub struct Second; pub fn second() {} \
                  pub enum Choice { One }";
    for (first, expected) in [
        ("pub fn first() { crate::second::second() }", 2),
        ("use crate::second; fn f() { second::second() }", 2),
        ("use crate::second::*; fn f() { second() }", 2),
        ("use crate::second::Choice::*; fn f() { One }", 2),
        ("use crate::*; fn f() { second::second() }", 2),
        ("fn f() { print!(\"{}\", crate::second::second()) }", 2),
        ("fn f() -> Vec<crate::second::Second> { todo!() }", 2),
        ("#[cfg(not(test))] use crate::second::Second;", 2),
        ("use crate::Other; use std::{fmt, second::Second};", 0),
        ("#[cfg(test)] mod tests { use crate::second::Second; }", 0),
        ("#[tokio::test] fn f() { crate::second::second() }", 0),
        ("//! See [`S`](crate::second::Second).\nstruct F;", 0),
    ] {
        let lib = "pub use other::*; mod first; mod second; use first::First;";
        let text = format!("{first} pub struct First;");
        let files = [
            ("src/lib.rs", lib),
            ("src/first.rs", &text),
            ("src/second.rs", second),
        ];
        assert_eq!(circles(&files).len(), expected, "{first}");
    }
}

#[test]
fn reexported_name_counts_for_the_file_that_defines_it() {
    let mut files = [
        ("src/lib.rs", "mod hold; pub use hold::Hold;"),
        (
            "src/hold.rs",
            "#[path = \"hold/state.rs\"] mod state; mod view; pub use state::State; \
             pub use view::*; pub struct Hold(State);",
        ),
        ("src/hold/state.rs", "pub struct State;"),
        ("src/hold/view.rs", "use super::State; pub struct View;"),
    ];
    assert!(circles(&files).is_empty());
    files[2].1 = "use crate::hold::View; pub struct State;";
    assert_eq!(circles(&files).len(), 2);
}
