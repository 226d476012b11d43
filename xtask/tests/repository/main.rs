//! The pages and figures of the repository.

mod architecture_page;
mod events_page;
mod failures_page;
mod publishing;
mod readme_figures;
