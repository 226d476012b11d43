//! What the simulated ensemble promises, behaviour by behaviour.

mod a_blocked_runtime;
mod a_cut_that_goes_one_way;
mod a_leader_cut_off_from_its_followers;
mod a_reconnect_answered_with_a_new_session;
mod a_seed;
mod a_server_that_refuses;
mod an_ensemble_that_is_slow;
mod clocks;
mod cuts_at_each_byte;
mod faults;
mod limits;
mod long_paths;
mod lost_data;
mod members_that_are_stopped;
mod servers;
mod servers_restarted_with_other_settings;
mod session_options;
mod sessions;
mod slow_handshakes;
mod support;
mod watches;
mod znodes;
