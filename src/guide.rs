//! The guide for authors of passes: the pages of `docs/guide`, whose code runs as tests of this module.

/// The pages, with the links between them as they are here; in the folder itself they are links to files.
macro_rules! pages {
    ($($(#[doc = $page:expr])+ $name:ident;)+) => {
        $(
            /// [build]: crate::guide::build
            /// [look]: crate::guide::look
            /// [rewrite]: crate::guide::rewrite
            /// [patterns]: crate::guide::patterns
            /// [expand]: crate::guide::expand
            /// [pass]: crate::guide::pass
            /// [test]: crate::guide::test
            /// [fast]: crate::guide::fast
            /// [raf-and-relay]: crate::guide::raf_and_relay
            /// [start]: crate::guide::start
            ///
            $(#[doc = $page])+
            pub mod $name {}
        )+
    };
}

pages! {
    #[doc = include_str!("../docs/guide/README.md")]
    start;
    #[doc = include_str!("../docs/guide/build.md")]
    build;
    #[doc = include_str!("../docs/guide/look.md")]
    look;
    #[doc = include_str!("../docs/guide/rewrite.md")]
    rewrite;
    #[doc = include_str!("../docs/guide/patterns.md")]
    patterns;
    #[doc = include_str!("../docs/guide/expand.md")]
    expand;
    #[doc = include_str!("../docs/guide/pass.md")]
    pass;
    #[doc = include_str!("../docs/guide/test.md")]
    test;
    #[doc = include_str!("../docs/guide/fast.md")]
    fast;
    #[doc = include_str!("../docs/guide/raf-and-relay.md")]
    raf_and_relay;
}
