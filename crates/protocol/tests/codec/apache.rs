//! The frames that Apache's classes write.

use std::collections::BTreeMap;

/// The frames, by their names in the file.
pub(crate) fn golden() -> BTreeMap<&'static str, Vec<u8>> {
    let lines = include_str!("golden/apache-3.8.0.txt").lines();
    lines
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let (name, digits) = line.split_once(' ').expect("a name and a frame");
            (name, bytes(digits))
        })
        .collect()
}

fn bytes(digits: &str) -> Vec<u8> {
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal digits"))
        .collect()
}
