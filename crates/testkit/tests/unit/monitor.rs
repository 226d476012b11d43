//! Tests of `src/four_letter/monitor.rs`.

use super::*;

#[test]
fn monitor_keeps_what_it_does_not_know() {
    let answer = "zk_version\t3.8.0, built\nzk_packets_received\t7\nzk_packets_sent\t6\n\
                  zk_watch_count\t2\nzk_znode_count\t5\nzk_ephemerals_count\t1\n\
                  zk_num_alive_connections\t3\nzk_outstanding_requests\t-1\n\
                  zk_avg_latency\t0.5\n";
    let monitor = Monitor::parse(answer).expect("figures");
    assert_eq!((monitor.packets_received, monitor.packets_sent), (7, 6));
    assert_eq!(
        (monitor.watches, monitor.znodes, monitor.ephemerals),
        (2, 5, 1)
    );
    assert_eq!((monitor.connections, monitor.outstanding_requests), (3, 0));
    assert_eq!(monitor.number("avg_latency"), Some(0.5));
    assert_eq!(monitor.number("version"), None);
}

#[test]
fn monitor_without_a_figure_is_an_error_that_names_it() {
    let error = Monitor::parse("zk_packets_received\tmany\n").expect_err("no number");
    assert!(error.to_string().contains("packets_received"), "{error}");
}
