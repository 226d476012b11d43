//! No output, process list or environment of a child shows a credential.

use std::os::unix::ffi::OsStringExt;

use crate::support::{Ended, Stage, ended, restrict, start_in, zkr};

const VARIABLE: &str = "ZKR_CREDENTIALS";
const CREDENTIALS: &str = "digest:owner:pass-4711";
const SECRET: &str = "pass-4711";

fn shows_no_secret(what: &[&str], ended: &Ended) {
    let shown = format!("{}{}", ended.stdout, ended.stderr);
    assert!(!shown.contains(SECRET), "{what:?}: {shown}");
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn neither_the_guard_nor_the_command_gets_the_credentials() {
    use std::path::Path;

    use rustix::process::Signal;

    use crate::support::{line_in, parent_of, read, send};

    let stage = Stage::new();
    let file = stage.file("id");
    let script = r#"env; echo "$$" > "$1"; while :; do sleep 0.05; done"#;
    let command = ("lock /lock -- sh -c", [script, "sh", file]);
    let holder = start_in([(VARIABLE, CREDENTIALS)], &stage.connect, command);
    let command = line_in(&file).await.trim().to_owned();
    let guard = parent_of(&command).as_raw_nonzero().to_string();
    let holder_id = holder.id().expect("it lives").to_string();
    assert_eq!(parent_of(&guard).as_raw_nonzero().to_string(), holder_id);
    let of = |id: &str, file: &str| read(Path::new(&format!("/proc/{id}/{file}")));
    for id in [&guard, &command] {
        let environment = of(id, "environ");
        assert!(environment.contains("ZKR_NODE=/lock/"), "{environment}");
        let shown = environment.contains(VARIABLE) || environment.contains(SECRET);
        assert!(!shown, "{environment}");
    }
    for id in [&holder_id, &guard, &command] {
        let arguments = of(id, "cmdline");
        let shown = arguments.is_empty() || arguments.contains(SECRET);
        assert!(!shown, "{arguments}");
    }
    send(Signal::TERM, &holder);
    let holder = ended(holder).await;
    holder.shows(["ZKR_NODE=/lock/"]);
    assert!(!holder.stdout.contains(VARIABLE), "{holder:?}");
    shows_no_secret(&["lock"], &holder);
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_file_that_others_can_read_is_warned_of() {
    let stage = Stage::new();
    let file = stage.file("credentials");
    std::fs::write(file, CREDENTIALS).expect("it is written");
    for (mode, others_read) in [
        (0o600, false),
        (0o400, false),
        (0o640, true),
        (0o604, true),
        (0o644, true),
    ] {
        restrict(file, mode);
        let arguments = ["doctor", "--credentials-file", file];
        let doctor = stage.run(&arguments).await;
        doctor.coded(0);
        doctor.shows(["digest:owner\n"]);
        shows_no_secret(&arguments, &doctor);
        let warning = doctor.stderr.strip_prefix("zkr: warning: ");
        match others_read {
            true => {
                let named = [file, &format!("{mode:04o}")];
                let is_named = |line: &str| named.iter().all(|it| line.contains(it));
                assert!(warning.is_some_and(is_named), "{doctor:?}");
                assert_eq!(doctor.stderr.lines().count(), 1, "{doctor:?}");
            }
            false => assert_eq!(doctor.stderr, "", "{mode:o}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_verb_shows_a_credential() {
    let stage = Stage::new();
    for (arguments, code) in [
        ("--help", 0),
        ("man", 0),
        ("completions bash", 0),
        ("lock /lock -- env", 0),
        ("lock /lock -- no-such-command", 127),
        ("semaphore /s --permits 2 -- env", 0),
        ("lead /leader --id a -- env", 0),
        ("who /lock", 0),
        ("who /lock --json", 0),
        ("leader /leader", 0),
        ("leader /leader --json", 0),
        ("evict /lock none --yes", 64),
        ("resize /lock 2", 64),
        ("watch /lock", 64),
        ("doctor /lock", 0),
        ("who /lock --connect 127.0.0.1:1 --connect-timeout 1s", 69),
        ("who /lock --connect 127.0.0.1:port", 64),
    ] {
        let child = start_in([(VARIABLE, CREDENTIALS)], &stage.connect, arguments);
        let ended = ended(child).await;
        ended.coded(code);
        shows_no_secret(&[arguments], &ended);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_that_are_wrong_are_not_shown() {
    let stage = Stage::new();
    let who = ["who", "/lock"];
    let not_utf8 = [b"digest:owner:\xff", SECRET.as_bytes()].concat();
    for wrong in [
        SECRET.into(),
        format!("digest:{SECRET}"),
        format!("{CREDENTIALS}\n:{SECRET}"),
    ]
    .map(String::into_bytes)
    .into_iter()
    .chain([not_utf8])
    {
        let wrong = std::ffi::OsString::from_vec(wrong);
        let child = zkr(&stage.connect).args(who).env(VARIABLE, &wrong).spawn();
        let ended = ended(child.expect("zkr starts")).await;
        ended.failed_with(64);
        shows_no_secret(&[&format!("{wrong:?}")], &ended);
    }
    // They are not for the command line: zkr does not repeat them where a log would keep them.
    for option in ["--credentials-file", "--credentials", "--auth"] {
        let joined = format!("{option}={CREDENTIALS}");
        for arguments in [
            &["who", "/lock", option, CREDENTIALS][..],
            &["who", "/lock", &joined],
        ] {
            let ended = stage.run(arguments).await;
            ended.failed_with(64);
            shows_no_secret(arguments, &ended);
        }
    }
}
