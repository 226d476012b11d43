//! Tests of `src/exit.rs`.

use super::*;

#[test]
fn help_and_readme_name_every_code() {
    let all = [
        Exit::Done,
        Exit::Usage,
        Exit::Unavailable,
        Exit::Internal,
        Exit::PortInUse,
        Exit::Conflict,
        Exit::BrokenPromise,
        Exit::NoPermission,
        Exit::TimedOut,
        Exit::Lost,
        Exit::Code(126),
        Exit::Code(127),
    ];
    for exit in all {
        let line = format!("\n  {:<4} ", exit.code());
        assert!(HELP.contains(&line), "{exit:?}");
        let row = format!("\n| {} |", exit.code());
        assert!(include_str!("../../README.md").contains(&row), "{exit:?}");
    }
    assert_eq!(Exit::Signal(2).code(), 130);
}
