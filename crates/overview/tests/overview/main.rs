//! Overviews on simulated ensembles, and on a server that counts.

mod circles;
mod kinds;
mod live;
mod looks;
mod rules;
mod scale;
mod support;
