//! Tests of `src/test/programs.rs`.

use super::*;

#[test]
fn program_that_fails_is_named_and_does_not_stop_the_others() {
    let shell = |name: &str, script: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Program {
            name: name.to_owned(),
            command,
            takes_filters: false,
            only_computes: name == "fails",
        }
    };
    let seen = target().join("test-output/seen-by-the-last");
    let last = format!("echo $WORD > {}", seen.display());
    let programs = vec![
        shell("fails", "exit 3"),
        shell("passes", "true"),
        shell("last", &last),
    ];
    let outcome = run(programs, |command| {
        command.env("WORD", "word");
    });
    let error = outcome.expect_err("one has failed");
    assert_eq!(error.to_string(), "tests failed in fails");
    assert_eq!(fs::read_to_string(seen).expect("it ran"), "word\n");
}
