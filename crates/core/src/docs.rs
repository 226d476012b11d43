#![doc = include_str!("docs/links.md")]
#![doc = include_str!("docs/README.md")]

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

pages! {
    first_week on_call failures fencing tick runtimes events encryption servers sharing lease
    handoff connection
}
