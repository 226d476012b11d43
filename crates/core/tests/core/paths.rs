//! Paths: what ZooKeeper would refuse is refused before anything is sent.

use proptest::prelude::*;
use zookeeper_recipes_core::NodePath;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_text_is_a_path_or_quoted_in_the_error(text in "\\PC{0,40}|[/.a\0\u{85}]{0,12}") {
        match NodePath::new(&text) {
            Ok(path) => {
                prop_assert_eq!(path.as_str(), &text);
                prop_assert!(text.starts_with('/') && text.len() > 1 && !text.ends_with('/'));
                for segment in text[1..].split('/') {
                    prop_assert!(!matches!(segment, "" | "." | ".."));
                }
            }
            Err(error) => {
                prop_assert_eq!(error.value(), &text);
                let quoted = format!("{text:?}");
                prop_assert!(error.to_string().contains(&quoted));
            }
        }
    }

    #[test]
    fn path_that_is_too_long_is_refused_in_few_words(length in 32_700_usize..32_900) {
        let path = format!("/{}", "x".repeat(length - 1));
        match NodePath::new(&path) {
            Ok(path) => {
                prop_assert!(length <= 32_768);
                prop_assert_eq!(path.join("child").is_ok(), length + "/child".len() <= 32_768);
            }
            Err(error) => {
                prop_assert!(length > 32_768);
                let expected = format!("path \"of {length} bytes\" is longer than 32768 bytes");
                prop_assert_eq!(error.to_string(), expected);
            }
        }
    }

    #[test]
    fn a_child_knows_its_parent(parent in "(/[a-z]{1,5}){1,4}", name in "[a-z\u{2615}]{1,8}") {
        let parent = NodePath::new(&parent).expect("a good path");
        let child = parent.join(&name).expect("a good name");
        prop_assert_eq!(child.name(), &name);
        prop_assert_eq!(child.parent(), Some(parent));
    }

    #[test]
    fn a_name_is_a_single_segment(name in "[a-z]{0,3}/[a-z]{0,3}|\\.|\\.\\.|") {
        let parent = NodePath::new("/locks").expect("a good path");
        prop_assert!(parent.join(&name).is_err());
    }
}

#[test]
fn znodes_of_the_server_are_no_paths_of_recipes() {
    for path in ["/zookeeper", "/zookeeper/quota", "/"] {
        assert!(NodePath::new(path).is_err(), "{path}");
    }
    for path in ["/zookeepers", "/app/zookeeper"] {
        assert!(NodePath::new(path).is_ok(), "{path}");
    }
}
