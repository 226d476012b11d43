//! Fault tests: what the recipes promise while connections, servers and processes fail.

mod bad_input;
mod blocked_runtimes;
mod broken_connections;
mod changed_servers;
mod closed_sessions;
mod cut_off_follower;
mod dropped_holds;
mod each_option;
mod full_sessions;
mod hostile_peers;
mod isolated_leader;
mod large_directories;
mod lost_data;
mod lost_replies;
mod many_watches;
mod moves;
mod other_servers;
mod refusals;
mod secrets;
mod sequence_overflow;
mod stopped_process;
mod support;
mod transfers;
mod users_clients;
