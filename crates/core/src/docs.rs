//! Pages about the recipes as a whole.

/// A page with links to the items here.
///
/// The first definition of a link counts. So `links.md` leads the links of the page to the items
/// here, and the definitions at the end of the page lead its readers on the web.
macro_rules! pages {
    ($($page:ident)*) => {
        $(
            #[doc = include_str!("docs/links.md")]
            #[doc = include_str!(concat!("docs/", stringify!($page), ".md"))]
            pub mod $page {}
        )*
    };
}

pages! { sharing events failures fencing handoff runtimes lease tick encryption }

#[doc = include_str!("docs/connection.md")]
pub mod connection {}

#[doc = include_str!("docs/servers.md")]
pub mod servers {}
