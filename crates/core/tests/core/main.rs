//! What core promises, on a simulated ensemble and on real servers.

mod all_of;
mod alone;
mod connecting;
mod contenders;
mod deletions;
mod directory_data;
mod handoff;
mod in_background;
mod leases;
mod long_queues;
mod losing;
mod memory;
mod own_znode;
mod owners;
mod paths;
mod refused;
mod replaces;
mod rules;
mod session_states;
mod sessions;
mod single_node;
mod standing_still;
mod support;
mod unpolled;
mod unsupported;
mod watch_budget;
