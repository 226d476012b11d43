//! Tests of `src/mutants/mutant.rs`.

use super::*;

const TEXT: &str = "
impl Grant {
    fn release(&mut self) {
        // The lease counts from here.
        self.state
            .end(now); // It ends.
        log();
    }
}

impl Lock {
    fn release(&mut self) {
        log();
    }
}
";

/// The text with this change, or why it has no place.
fn change(function: &str, find: &str, replace: &str) -> Result<String, String> {
    let edit = Edit {
        file: "",
        function,
        find,
        replace,
    };
    let source = Source::new(TEXT.to_owned()).expect("it is Rust");
    let text = edit.change(&source).and_then(|(body, change)| {
        let mutant = changed(&source, &body, vec![change])?;
        replaced(&source, &(0..TEXT.len()), vec![(body, mutant)])
    });
    text.map_err(|error| format!("{error:#}"))
}

#[test]
fn place_is_found_whatever_lines_and_comments_are_between_its_tokens() {
    let text = change("Grant::release", "self.state.end(now);\nlog();", "log();");
    let found = "self.state\n            .end(now); // It ends.\n        log();";
    assert_eq!(text, Ok(TEXT.replace(found, "log();")));
    // Nothing in the place of whole lines takes the lines.
    let text = change("Lock::release", "log();", "");
    let lines = "impl Lock {\n    fn release(&mut self) {\n";
    let expected = TEXT.replace(&format!("{lines}        log();\n"), lines);
    assert_eq!(text, Ok(expected));
}

#[test]
fn change_without_exactly_one_place_in_a_body_is_an_error_that_names_the_likest_line() {
    for (function, find, replace, expected) in [
        (
            "Grant::release",
            "self.stated.end(now)",
            "",
            r#""Grant::release" has no "self.stated.end(now)" (nearest is line 5: self.state)"#,
        ),
        ("", "log();", "", r#"in each of the lines [7, 13]"#),
        (
            "Grant::free",
            "log()",
            "",
            "no item is named \"Grant::free\"",
        ),
        (
            "release",
            "log()",
            "",
            "several items are named \"release\"",
        ),
        ("Lock::release", "log()", "{", "the result is no Rust"),
        ("Lock::release", "&mut self", "", "is in no body"),
    ] {
        let error = change(function, find, replace).expect_err("it does not apply");
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn mutants_of_a_function_stand_beside_its_body() {
    let source = Source::new("fn log() { a(); b() }".to_owned()).expect("it is Rust");
    let early = ("early", vec![(11..15, String::new())]);
    let late = ("late", vec![(16..19, "c()".to_owned())]);
    let bodies = BTreeMap::from([((9, 21), BTreeMap::from([early, late]))]);
    let text = with_switches(&source, bodies).expect("it applies");
    let (early, late) = (is_chosen("early"), is_chosen("late"));
    let original = "{ a(); b() }";
    let switches = format!("if {early} {{  b() }} else if {late} {{ a(); c() }} else {original}");
    assert_eq!(text, format!("fn log() {{\n{switches}\n}}"));
}
