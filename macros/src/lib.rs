//! Attributes that turn functions into tools and prompts: `#[tool]`, `#[prompt]`, and `#[tools]`
//! for the methods of a type.
//!
//! Use them through an adapter with its feature `macros`: `mcp_sansio_tokio::tool` and so on. Each
//! adapter has its own entry points here, because the generated code names the adapter's crate;
//! those without a prefix are for programs that depend on `mcp-sansio-handlers` and `mcp-sansio`.
//! The chapter "Attributes" of the guide shows their expansions.

#![forbid(unsafe_code)]

mod block;
mod function;
mod item;
mod options;
mod paths;

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;

use item::Kind;
use paths::Paths;

/// Defines the attributes for the users of one crate.
macro_rules! attributes {
    ($($paths:ident: $tool:ident $prompt:ident $tools:ident;)+) => { $(
        /// Makes a tool of a function: generates the function `{name}_tool`, which returns a
        /// `ServerItem` for `Server::add_item`. The function itself stays unchanged.
        ///
        /// The doc comment is the description of the tool, and the parameters are its arguments,
        /// with their doc comments and their attributes of `serde` and `schemars`. A parameter may
        /// also be a `State<T>`, a `&Context`, or, in place of arguments, a `Call<T>`. The function
        /// may be `async`, and returns what handlers return; a `Result` has an error that
        /// implements `IntoHandlerError`, and with `Structured<T>` the tool has the schema of `T`.
        ///
        /// | Option | Is |
        /// | --- | --- |
        /// | `name = "..", title = "..", description = ".."` | the text that clients get |
        /// | `read_only`, `destructive`, `idempotent`, `open_world` | a hint; `destructive = false` |
        /// | `requires = ".."` | a scope; it may be repeated |
        /// | `blocking` | a function that runs on a thread for blocking work |
        /// | `local` | an item of a `Server::local` |
        #[proc_macro_attribute]
        pub fn $tool(options: TokenStream, item: TokenStream) -> TokenStream {
            run(function::expand(Kind::Tool, options.into(), item.into(), &Paths::$paths()))
        }

        /// Makes a prompt of a function: generates the function `{name}_prompt`, which returns a
        /// `ServerItem` for `Server::add_item`.
        ///
        /// As with a tool, but the arguments are strings, and the options are `name`, `title`,
        /// `description`, `requires`, `blocking` and `local`.
        #[proc_macro_attribute]
        pub fn $prompt(options: TokenStream, item: TokenStream) -> TokenStream {
            run(function::expand(Kind::Prompt, options.into(), item.into(), &Paths::$paths()))
        }

        /// Makes tools and prompts of a type's methods that are marked with `#[tool]` and
        /// `#[prompt]`: generates the associated function `add_tools`, which adds them all to a
        /// server. The methods take `&self`: the value is a `State` of the server.
        ///
        /// `#[tools(pub)]` makes `add_tools` public; otherwise it is visible in its crate. With
        /// `#[tools(local)]` the server is a `Server::local`.
        #[proc_macro_attribute]
        pub fn $tools(options: TokenStream, item: TokenStream) -> TokenStream {
            run(block::expand(options.into(), item.into(), &Paths::$paths()))
        }
    )+ };
}

attributes! {
    handlers: tool prompt tools;
    tokio: tokio_tool tokio_prompt tokio_tools;
    async_std: async_std_tool async_std_prompt async_std_tools;
    std: std_tool std_prompt std_tools;
    embedded: embedded_tool embedded_prompt embedded_tools;
}

fn run(expanded: Result<Tokens, (syn::Error, Tokens)>) -> TokenStream {
    match expanded {
        Ok(tokens) => tokens.into(),
        // With the unchanged item, so that its uses are not errors too.
        Err((error, item)) => {
            let mut tokens = error.into_compile_error();
            tokens.extend(item);
            tokens.into()
        }
    }
}

#[cfg(test)]
mod tests;
