//! Tests of `src/run/message.rs`.

use super::*;

#[test]
fn what_is_written_is_read() {
    for order in [
        Order::Until(Duration::from_nanos(123_456_789_012)),
        Order::Begin,
        Order::Signal(15),
    ] {
        assert_eq!(order.to_string().parse(), Ok(order));
    }
    for report in [
        Report::Ready(4711),
        Report::Stopping,
        Report::Stopped(20),
        Report::Exited(3),
        Report::Killed(9),
        Report::NotStarted(126),
    ] {
        assert_eq!(report.to_string().parse(), Ok(report));
    }
    assert_eq!("until tomorrow".parse::<Order>(), Err(Garbled));
}
