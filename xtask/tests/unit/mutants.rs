//! Tests of `src/mutants.rs`: the file of the mutants is right.

use std::fs;

use super::copy::tree;
use super::*;

#[test]
fn every_mutant_applies_to_the_sources() {
    let mutants = mutant::read(&root()).expect("the mutants can be read");
    if let Err(error) = mutant::switched(&mutants, &root()) {
        panic!("{error}");
    }
}

#[test]
fn every_test_that_finds_a_mutant_exists() {
    let sources = tree(&root()).expect("the workspace can be listed");
    let sources = sources
        .iter()
        .filter(|file| file.extension() == Some("rs".as_ref()));
    let sources: Vec<String> = sources
        .map(|file| fs::read_to_string(root().join(file)).expect("it can be read"))
        .collect();
    let mutants = mutant::read(&root()).expect("the mutants can be read");
    for test in each_once(mutants.iter().map(|it| &it.detector)).0 {
        let name = test.split([' ', ':']).rfind(|part| !part.is_empty());
        let name = name.unwrap_or_default();
        let exists = sources.iter().any(|source| source.contains(name));
        assert!(exists, "no source has {name}, of {test}");
    }
}
