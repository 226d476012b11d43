//! What the recipes promise, on the days when everything breaks.

mod bad_input;
mod blocked_runtimes;
mod broken_connections;
mod changed_servers;
mod closed_sessions;
mod cut_off_follower;
mod dropped_holds;
mod end_of_the_count;
mod hostile_peers;
mod isolated_leader;
mod kinds;
mod lost_replies;
mod many_watches;
mod other_servers;
mod refusals;
mod stopped_process;
mod support;
