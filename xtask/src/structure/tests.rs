//! The check, on small trees.

use std::io;

use super::*;

/// What is wrong with a crate of these files, whose root is the first.
fn found(files: &[(&str, &str)]) -> Findings {
    let read = |path: &Path| {
        let mut files = files.iter();
        let file = files.find(|(file, _)| Path::new(file) == path);
        let text = file.map(|(_, text)| (*text).to_owned());
        text.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    };
    let mut findings = Findings::default();
    let looked = findings.look_at(Path::new(files[0].0), &read);
    looked.expect("the crate can be read");
    findings
}

/// The circles alone.
fn circles_in(files: &[(&str, &str)]) -> Vec<String> {
    found(files).circles.into_iter().collect()
}

#[test]
fn imports_one_way_are_no_circle() {
    let files = [
        ("src/lib.rs", "mod upper; mod lower; use upper::Upper;"),
        (
            "src/upper.rs",
            "use crate::lower::Lower; pub struct Upper(Lower);",
        ),
        ("src/lower.rs", "pub struct Lower;"),
    ];
    assert!(circles_in(&files).is_empty());
}

#[test]
fn files_that_import_each_other_are_named_with_what_they_take() {
    let files = [
        ("src/lib.rs", "mod bench; mod summary;"),
        (
            "src/bench.rs",
            "use crate::summary::{Summary, write as put}; pub struct Plan;",
        ),
        (
            "src/summary.rs",
            "use super::bench::Plan; pub struct Summary; pub fn write() {}",
        ),
    ];
    assert_eq!(
        circles_in(&files),
        ["  src/bench.rs -> src/summary.rs: Summary, write\n  \
          src/summary.rs -> src/bench.rs: Plan"]
    );
}

#[test]
fn circle_through_three_files_of_a_directory_is_one_circle() {
    let files = [
        ("src/main.rs", "mod room; use room::a::A;"),
        ("src/room/mod.rs", "mod a; mod b; mod c; mod d;"),
        ("src/room/a.rs", "use super::{b::B, d::D}; pub struct A;"),
        // A neighbour, which is no part of the circle.
        ("src/room/d.rs", "pub struct D;"),
        ("src/room/b.rs", "use super::c::C; pub struct B;"),
        ("src/room/c.rs", "use crate::room::a::A; pub struct C;"),
    ];
    let circles = circles_in(&files);
    assert_eq!(circles.len(), 1);
    assert_eq!(circles[0].lines().count(), 3, "{circles:?}");
}

#[test]
fn paths_inside_code_and_inside_macros_count() {
    for code in [
        "pub fn first() { crate::second::second() }",
        "use crate::second; pub fn first() { second::second() }",
        "use crate::second::*; pub fn first() { second() }",
        "use crate::second::Choice::*; pub fn first() { One }",
        "pub fn first() { println!(\"{}\", crate::second::second()) }",
        "pub fn first() -> Vec<crate::second::Second> { Vec::new() }",
    ] {
        let files = [
            ("src/lib.rs", "mod first; mod second;"),
            ("src/first.rs", code),
            (
                "src/second.rs",
                "use crate::first::first; pub struct Second; pub fn second() {} \
                 pub enum Choice { One }",
            ),
        ];
        assert_eq!(circles_in(&files).len(), 1, "{code}");
    }
}

#[test]
fn reexported_name_counts_for_the_file_that_defines_it() {
    let files = [
        ("src/lib.rs", "mod hold; pub use hold::Hold;"),
        (
            "src/hold.rs",
            "mod state; mod view; pub use self::state::State; pub use view::*; \
                         pub struct Hold(State);",
        ),
        ("src/hold/state.rs", "pub struct State;"),
        // Neither lib.rs nor hold.rs, which only hand the names on.
        (
            "src/hold/view.rs",
            "use super::State; use crate::hold::State as Same; pub struct View;",
        ),
    ];
    assert!(circles_in(&files).is_empty(), "{:?}", circles_in(&files));

    let mut files = files;
    files[2].1 = "use crate::hold::View; pub struct State;";
    assert_eq!(
        circles_in(&files),
        ["  src/hold/state.rs -> src/hold/view.rs: View\n  \
          src/hold/view.rs -> src/hold/state.rs: State"]
    );
}

#[test]
fn parent_that_takes_from_a_child_and_gives_to_it_is_a_circle() {
    let files = [
        ("src/lib.rs", "mod hold;"),
        (
            "src/hold.rs",
            "mod state; use state::State; pub struct Hold(State); pub fn now() {}",
        ),
        ("src/hold/state.rs", "use super::now; pub struct State;"),
    ];
    assert_eq!(circles_in(&files).len(), 1);

    let mut files = files;
    files[1].1 = "mod state; pub use state::State; pub fn now() {}";
    assert!(circles_in(&files).is_empty(), "{:?}", circles_in(&files));
}

#[test]
fn module_in_its_parents_file_is_part_of_that_file() {
    let files = [
        (
            "src/lib.rs",
            "mod hold { pub mod state; pub struct Hold(state::State); }",
        ),
        ("src/hold/state.rs", "use super::Hold; pub struct State;"),
    ];
    assert_eq!(circles_in(&files).len(), 1);
}

#[test]
fn module_at_a_path_of_its_own_is_read_from_there() {
    let files = [
        (
            "tests/all.rs",
            "#[path = \"../shared/common.rs\"] mod common; pub struct All;",
        ),
        ("tests/../shared/common.rs", "use crate::All;"),
    ];
    assert!(circles_in(&files).is_empty());
    assert_eq!(found(&files).files.len(), 2);
}

#[test]
fn tests_doc_comments_and_visibilities_are_no_arrows() {
    let files = [
        (
            "src/lib.rs",
            "mod first; mod second; #[cfg(test)] mod tests_without_a_file;",
        ),
        (
            "src/first.rs",
            "use crate::second::Second; pub struct First(Second);",
        ),
        (
            "src/second.rs",
            "
            //! See [`First`](crate::first::First).
            /// [`First`]: crate::first::First
            pub(in crate) struct Second;
            #[cfg(all(test, unix))] use crate::first::First;
            impl Second { #[cfg(test)] fn first(&self) -> crate::first::First { todo!() } }
            #[cfg(test)] mod tests { use crate::first::First; }
        ",
        ),
    ];
    assert!(circles_in(&files).is_empty(), "{:?}", circles_in(&files));

    let mut files = files;
    files[2].1 = "#[cfg(not(test))] use crate::first::First; pub struct Second;";
    assert_eq!(circles_in(&files).len(), 1);
}

#[test]
fn names_of_other_crates_are_no_arrows() {
    let files = [
        (
            "src/lib.rs",
            "mod first; pub use other::*; use first::First; pub struct Here;",
        ),
        (
            "src/first.rs",
            "use crate::Elsewhere; use anyhow::anyhow; use std::fmt; \
                          pub struct First(Elsewhere, fmt::Error);",
        ),
    ];
    assert!(circles_in(&files).is_empty(), "{:?}", circles_in(&files));
}

#[test]
fn globs_of_several_other_crates_are_followed_to_an_end() {
    let files = [(
        "src/lib.rs",
        "use one::*; use two::a::*; use three::b::*; pub fn first() { second() }",
    )];
    assert!(circles_in(&files).is_empty());
}
