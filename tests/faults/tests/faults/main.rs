//! Fault tests: what the recipes promise while connections, servers and processes fail.

mod broken_connections;
mod changed_servers;
mod cut_off_follower;
mod dropped_holds;
mod each_option;
mod full_sessions;
mod isolated_leader;
mod longest_data;
mod lost_data;
mod lost_replies;
mod moves;
mod refusals;
mod sasl;
mod secrets;
mod sequence_overflow;
mod support;
mod trees;
mod users_clients;
