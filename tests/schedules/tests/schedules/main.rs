//! The recipes under faults, on simulated ensembles: by chance, and each fault at each request.

mod dropped_calls;
mod exhaustive;
mod seeds;
