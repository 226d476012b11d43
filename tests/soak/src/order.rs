//! The orders of a process.

use std::io;

use tokio::sync::watch;

/// What a process is to do, by a line on its standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// `work`: it releases each hold after some milliseconds.
    Work,
    /// `stay`: it keeps each hold until the hold is lost.
    Stay,
    /// `end`: it shuts down.
    End,
}

impl Order {
    const ALL: [Order; 3] = [Order::Work, Order::Stay, Order::End];

    pub(crate) fn line(self) -> &'static str {
        match self {
            Order::Work => "work",
            Order::Stay => "stay",
            Order::End => "end",
        }
    }

    /// The orders. A thread ends the process when the input ends, even if the tasks are blocked.
    pub(crate) fn read_all() -> watch::Receiver<Order> {
        let (sender, orders) = watch::channel(Order::Work);
        std::thread::spawn(move || {
            for line in io::stdin().lines().map_while(Result::ok) {
                let order = Order::ALL.into_iter().find(|order| order.line() == line);
                order.map(|order| sender.send_replace(order));
            }
            std::process::exit(1);
        });
        orders
    }
}
