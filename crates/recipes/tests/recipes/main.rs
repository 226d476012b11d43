//! The costs on the pages of the recipes, who holds in the lists of contenders, and several recipes
//! that are held together.

mod all_of;
mod costs;
mod entries;
