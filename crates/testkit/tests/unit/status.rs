//! Tests of `src/four_letter/status.rs`.

use super::*;

#[test]
fn status_reads_mode_and_epoch() {
    let answer = "Zookeeper version: 3.8.0-x, built on 2024\nLatency min/avg/max: 0/0.0/0\n\
                  Zxid: 0x200000003\nMode: leader\nNode count: 5\n";
    let status = Status::parse(answer).expect("a status");
    assert_eq!(status.mode, Mode::Leader);
    assert_eq!(status.zxid >> 32, 2);
    assert!(Status::parse("Mode: leader\n").is_err());
    assert!(Status::parse("").is_err());
}
