//! A network with a round trip, without leaving the machine.
//!
//! The servers and the libraries run in two network namespaces, which have no way out. Each
//! namespace has a TUN device. This process reads the packets of one device, and writes them to the
//! other half a round trip later. The kernel does the rest: its TCP sees a network.

use std::net::Ipv4Addr;
use std::num::NonZeroU64;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::setpriority_process;
use rustix::thread::set_current_timer_slack;
use tokio::runtime::Builder;
use tokio_tun::Tun;
use zookeeper_recipes_benches::namespace::{Namespace, run};

use crate::packets::Packets;

/// The address of the servers. It is one of those that are set aside for benchmarks.
pub(super) const SERVERS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);

const CLIENTS: &str = "198.18.0.1/30";
const NETMASK: Ipv4Addr = Ipv4Addr::new(255, 255, 255, 252);

/// More than a packet of such a device.
const PACKET: usize = 2048;

/// What the network does to packets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Behaviour {
    pub(super) round_trip: Duration,
    /// The share of the packets that is lost, each way.
    pub(super) loss: f64,
}

/// A packet, and when it is to arrive.
type Underway = (Instant, Vec<u8>);

/// The network, and the namespace of the libraries. That of the servers is this process's own.
#[derive(Debug)]
pub(super) struct Link {
    behaviour: Arc<Mutex<Behaviour>>,
    pub(super) packets: Arc<Mutex<Packets>>,
    clients: Namespace,
}

impl Link {
    /// Makes the network, without a delay at first. This process must be in a namespace of its own.
    ///
    /// # Errors
    ///
    /// If the kernel has no TUN devices, the programs `ip`, `unshare` and `nsenter` are missing, or
    /// this process may not make networks.
    pub(super) fn start() -> anyhow::Result<Link> {
        let link = Link {
            behaviour: Arc::default(),
            packets: Arc::default(),
            clients: Namespace::start()?,
        };
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let device = |name| Tun::builder().name(name);
        let devices = {
            let _in_the_runtime = runtime.enter();
            let servers = device("zk-servers").address(SERVERS).netmask(NETMASK).up();
            [device("zk-clients"), servers].map(|device| {
                let device = device.build().map_err(anyhow::Error::from)?.pop();
                device.context("no device")
            })
        };
        let [clients, servers] = devices;
        let (clients, servers) = (Arc::new(clients?), Arc::new(servers?));
        link.give_device_to_clients()?;
        for (from, to, to_server) in [(&clients, &servers, true), (&servers, &clients, false)] {
            let (sender, receiver) = channel();
            runtime.spawn(link.read(from.clone(), sender, to_server));
            let to = to.clone();
            thread::spawn(move || write(&to, &receiver));
        }
        thread::spawn(move || {
            hurry();
            runtime.block_on(std::future::pending::<()>());
        });
        Ok(link)
    }

    /// Changes the behaviour for the packets that come from now on.
    pub(super) fn behave(&self, behaviour: Behaviour) {
        let current = self.behaviour.lock();
        *current.unwrap_or_else(PoisonError::into_inner) = behaviour;
    }

    /// The words before a command that make it run in the libraries' namespace.
    pub(super) fn entrance(&self) -> Vec<String> {
        self.clients.entrance()
    }

    fn give_device_to_clients(&self) -> anyhow::Result<()> {
        let process = self.clients.process().to_string();
        run(&["ip", "link", "set", "lo", "up"])?;
        run(&["ip", "link", "set", "zk-clients", "netns", &process])?;
        let entrance = self.entrance();
        for words in [
            &["ip", "link", "set", "lo", "up"][..],
            &["ip", "address", "add", CLIENTS, "dev", "zk-clients"],
            &["ip", "link", "set", "zk-clients", "up"],
        ] {
            let entrance = entrance.iter().map(String::as_str);
            run(&entrance.chain(words.iter().copied()).collect::<Vec<_>>())?;
        }
        Ok(())
    }

    /// Reads packets, counts them, loses some, and decides when the others arrive.
    fn read(
        &self,
        from: Arc<Tun>,
        underway: Sender<Underway>,
        to_server: bool,
    ) -> impl Future<Output = ()> + Send + use<> {
        let (behaviour, packets) = (self.behaviour.clone(), self.packets.clone());
        async move {
            let mut packet = [0; PACKET];
            while let Ok(length) = from.recv(&mut packet).await {
                let (now, packet) = (Instant::now(), &packet[..length]);
                let packets = packets.lock();
                packets
                    .unwrap_or_else(PoisonError::into_inner)
                    .count(packet, to_server);
                let behaviour = behaviour.lock();
                let Behaviour { round_trip, loss } =
                    *behaviour.unwrap_or_else(PoisonError::into_inner);
                let lost = fastrand::f64() < loss;
                if !lost
                    && underway
                        .send((now + round_trip / 2, packet.to_vec()))
                        .is_err()
                {
                    break;
                }
            }
        }
    }
}

/// Writes each packet when it is to arrive.
fn write(to: &Tun, underway: &Receiver<Underway>) {
    hurry();
    for (due, packet) in underway {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        // A packet that cannot be written is lost, as in any network.
        let _ = to.try_send(&packet);
    }
}

/// Lets this thread wake in time, also if others want the processor.
fn hurry() {
    // Without this right, packets are late by some more microseconds.
    let _ = setpriority_process(None, -20);
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}
