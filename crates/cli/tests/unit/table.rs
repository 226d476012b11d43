//! Tests of `src/queue/table.rs`.

use super::*;

#[test]
fn ages_have_two_units() {
    let ages = [0, 59, 60, 3599, 3600, 86_399, 86_400, 1_000_000];
    let shown: Vec<String> = ages.iter().map(|seconds| age(0, seconds * 1000)).collect();
    let expected = [
        "0s", "59s", "1m00s", "59m59s", "1h00m", "23h59m", "1d00h", "11d13h",
    ];
    assert_eq!(shown, expected);
    assert_eq!(age(1000, 0), "0s", "the server's clock is ahead");
}

#[test]
fn columns_are_aligned() {
    let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
    let lines = aligned(
        &[row(["#", "STATE", "X"]), row(["10", "holds it", "y"])],
        &[0],
    );
    assert_eq!(lines, [" #  STATE     X", "10  holds it  y"]);
}
