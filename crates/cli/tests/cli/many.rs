//! Many shells on one lock.

use zookeeper_recipes_suite::{administrator, assert_directory_empty, server};

use crate::support::{ended, files, read, start};

#[tokio::test(flavor = "multi_thread")]
async fn fifty_shells_append_to_one_file_one_after_the_other() {
    const SHELLS: i32 = 50;
    let server = server().await;
    let files = files();
    let file = files.path().join("log");
    let script = r#"
        echo "in $ZKR_FENCING_TOKEN" >> "$1"
        sleep 0.01
        echo "out $ZKR_FENCING_TOKEN" >> "$1"
        exit $2"#;
    let path = file.to_str().expect("text");
    let mut shells = Vec::new();
    for code in 1..=SHELLS {
        let code_text = code.to_string();
        let command = ["sh", "-c", script, "sh", path, &code_text];
        let options = ["lock", "/lock", "--session-timeout", "30s", "--"];
        let arguments = [&options[..], &command].concat();
        shells.push((code, start(&server.connect_string(), &arguments)));
    }
    for (code, shell) in shells {
        let ended = ended(shell).await;
        assert_eq!((ended.code, &*ended.stderr), (Some(code), ""));
    }
    let text = read(&file);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2 * usize::try_from(SHELLS).expect("a number"));
    let mut last = 0;
    for pair in lines.chunks(2) {
        let token = pair[0].strip_prefix("in ").expect("nobody else holds");
        assert_eq!(pair[1], format!("out {token}"), "never two at once");
        let token: i64 = token.parse().expect("a token");
        assert!(token > last, "in order: {token} after {last}");
        last = token;
    }
    let administrator = administrator(&server).await;
    assert_directory_empty(&administrator, "/lock").await;
}
