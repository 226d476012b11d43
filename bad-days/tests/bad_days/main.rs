//! What the recipes promise, on the days when everything breaks.

mod broken_connections;
mod cut_off_follower;
mod dropped_holds;
mod end_of_the_count;
mod hostile_peers;
mod kinds;
mod lost_replies;
mod many_watches;
mod refusals;
mod stopped_process;
mod support;
