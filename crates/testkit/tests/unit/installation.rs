//! Tests of `src/installation.rs`.

use super::*;

fn environment(variables: &[(&'static str, &Path)]) -> impl Fn(&str) -> Option<OsString> + use<> {
    let variables: Vec<(&'static str, OsString)> = variables
        .iter()
        .map(|(name, value)| (*name, value.as_os_str().to_owned()))
        .collect();
    move |asked| {
        variables
            .iter()
            .find(|(name, _)| *name == asked)
            .map(|(_, value)| value.clone())
    }
}

fn touch(path: &Path) {
    fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
    fs::write(path, b"").expect("a file");
}

#[test]
fn home_gives_its_own_jars_and_those_of_lib() {
    let home = tempfile::tempdir().expect("a directory");
    touch(&home.path().join("zookeeper-3.4.14.jar"));
    touch(&home.path().join("lib/slf4j-api-1.7.25.jar"));
    touch(&home.path().join("lib/notes.txt"));
    let found = class_path(environment(&[("ZOOKEEPER_HOME", home.path())]), home.path())
        .expect("a class path");
    let jars: Vec<PathBuf> = env::split_paths(&found).collect();
    assert_eq!(
        jars,
        [
            home.path().join("lib/slf4j-api-1.7.25.jar"),
            home.path().join("zookeeper-3.4.14.jar"),
        ]
    );
}

#[test]
fn home_without_a_server_is_named_in_the_error() {
    let home = tempfile::tempdir().expect("a directory");
    touch(&home.path().join("lib/zookeeper-jute-3.8.0.jar"));
    let error = class_path(environment(&[("ZOOKEEPER_HOME", home.path())]), home.path())
        .expect_err("no server there");
    let message = error.to_string();
    assert!(message.contains("ZOOKEEPER_HOME"), "{message}");
    assert!(
        message.contains(home.path().to_str().expect("UTF-8")),
        "{message}"
    );
}

#[test]
fn class_path_variable_goes_before_everything_else() {
    let directory = tempfile::tempdir().expect("a directory");
    touch(&directory.path().join("own/zookeeper.jar"));
    touch(&directory.path().join("usr/share/java/zookeeper.jar"));
    let own = directory.path().join("own/*");
    let found = class_path(
        environment(&[("ZOOKEEPER_CLASSPATH", &own)]),
        directory.path(),
    );
    assert_eq!(found, Ok(own.into_os_string()));
}

#[test]
fn debian_jar_is_found_without_any_variable() {
    let root = tempfile::tempdir().expect("a directory");
    let jar = root.path().join("usr/share/java/zookeeper.jar");
    touch(&jar);
    let found = class_path(environment(&[]), root.path());
    assert_eq!(found, Ok(jar.into_os_string()));
}

#[test]
fn nothing_found_says_what_to_install_on_which_system() {
    let root = tempfile::tempdir().expect("a directory");
    let message = class_path(environment(&[]), root.path())
        .expect_err("nothing there")
        .to_string();
    for part in ["Debian", "Fedora", "macOS", "ZOOKEEPER_HOME"] {
        assert!(message.contains(part), "{part} in {message}");
    }
}

#[test]
fn java_comes_from_its_home_or_from_the_path() {
    let directory = tempfile::tempdir().expect("a directory");
    let java_in_home = directory.path().join("home/bin/java");
    let java_in_path = directory.path().join("path/java");
    touch(&java_in_home);
    touch(&java_in_path);
    let (home, path) = (directory.path().join("home"), directory.path().join("path"));
    assert_eq!(
        java(environment(&[("JAVA_HOME", &home), ("PATH", &path)])),
        Ok(java_in_home)
    );
    assert_eq!(java(environment(&[("PATH", &path)])), Ok(java_in_path));
    assert_eq!(java(environment(&[])), Err(InstallationError::NoJava));
    assert!(java(environment(&[("JAVA_HOME", &path)])).is_err());
}
