//! The costs on the pages of the recipes, and who holds in the lists of contenders.

mod costs;
mod entries;
