use proc_macro2::TokenStream;
use quote::quote;

/// The crates that the generated code names.
pub(crate) struct Paths {
    /// The crate with `Server`, `Call` and so on.
    pub(crate) root: TokenStream,
    /// The module with `Tool` and `Prompt`.
    pub(crate) protocol: TokenStream,
}

impl Paths {
    pub(crate) fn handlers() -> Self {
        Self { root: quote!(::mcp_sansio_handlers), protocol: quote!(::mcp_sansio::protocol) }
    }

    pub(crate) fn tokio() -> Self {
        let root = quote!(::mcp_sansio_tokio);
        Self { protocol: quote!(#root::protocol), root }
    }

    pub(crate) fn async_std() -> Self {
        let root = quote!(::mcp_sansio_async_std);
        Self { protocol: quote!(#root::protocol), root }
    }

    pub(crate) fn std() -> Self {
        let root = quote!(::mcp_sansio_std);
        Self { protocol: quote!(#root::protocol), root }
    }

    pub(crate) fn embedded() -> Self {
        let root = quote!(::mcp_sansio_embedded);
        Self { protocol: quote!(#root::protocol), root }
    }
}
