//! The pages and figures of the repository, and the commands.

mod architecture_page;
mod demo;
mod events_page;
mod failures_page;
mod publishing;
mod readme_figures;
