//! Any names of znodes, read as contenders of each recipe.

#![no_main]

#[path = "../../../../tests/suite/tests/suite/names/reading.rs"]
mod reading;

use libfuzzer_sys::fuzz_target;
use reading::{names_in, read_as_each_recipe};

fuzz_target!(|data: &[u8]| {
    let Some((length, rest)) = data.split_first() else {
        return;
    };
    // An odd number: the directory has data.
    let (data, names) = rest.split_at(rest.len().min(usize::from(length / 16)));
    read_as_each_recipe(&names_in(names), (length % 2 == 1).then_some(data));
});
