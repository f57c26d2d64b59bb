//! The guide shows what the attributes expand to.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Item, Meta};

use crate::item::Kind;
use crate::paths::Paths;
use crate::{block, function};

/// Returns each expansion in the guide, with the code that it expands, which is the block before it.
fn samples() -> Vec<(String, String)> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/guide/attributes.md");
    let page = std::fs::read_to_string(page).unwrap();
    let blocks: Vec<_> = page
        .split("```rust")
        .skip(1)
        .map(|rest| rest.split_once('\n').unwrap().1.split_once("```").unwrap().0.to_owned())
        .collect();
    let pairs = blocks.windows(2).map(|pair| (pair[0].clone(), pair[1].clone()));
    // Only what an attribute writes has paths that begin at the root.
    pairs.filter(|(_, expanded)| expanded.contains("::mcp_sansio_tokio::ServerItem")).collect()
}

/// Expands the attributes of a file.
fn expand(text: &str) -> String {
    let mut file = syn::parse_file(text).unwrap();
    let mut tokens = TokenStream::new();
    for mut item in std::mem::take(&mut file.items) {
        if matches!(item, Item::Use(_)) {
            continue;
        }
        let attributes = match &mut item {
            Item::Fn(function) => &mut function.attrs,
            Item::Impl(block) => &mut block.attrs,
            _ => &mut Vec::new(),
        };
        let expanded = take(attributes).map(|(name, options)| {
            let (item, paths) = (quote!(#item), Paths::tokio());
            match &*name {
                "tools" => block::expand(options, item, &paths),
                "tool" => function::expand(Kind::Tool, options, item, &paths),
                _ => function::expand(Kind::Prompt, options, item, &paths),
            }
        });
        match expanded {
            Some(expanded) => tokens.extend(expanded.map_err(|(error, _)| error).unwrap()),
            None => tokens.extend(quote!(#item)),
        }
    }
    prettyplease::unparse(&syn::parse2(tokens).unwrap())
}

/// Removes the attribute of this crate, and returns its name and its options.
fn take(attributes: &mut Vec<Attribute>) -> Option<(String, TokenStream)> {
    let ours =
        |it: &Attribute| ["tool", "tools", "prompt"].iter().any(|name| it.path().is_ident(name));
    let attribute = attributes.remove(attributes.iter().position(ours)?);
    let options = match &attribute.meta {
        Meta::List(list) => list.tokens.clone(),
        _ => TokenStream::new(),
    };
    Some((attribute.path().get_ident()?.to_string(), options))
}

#[test]
fn the_guide_shows_the_expansion() {
    let samples = samples();
    assert!(samples.len() >= 2);
    for (written, shown) in samples {
        let expanded = expand(&written);
        let shown = prettyplease::unparse(&syn::parse_file(&shown).unwrap());
        assert!(expanded == shown, "the guide should show:\n{expanded}");
    }
}

/// Returns the message about the mistake in a file with one item.
fn mistake(text: &str) -> String {
    let mut file = syn::parse_file(text).unwrap();
    let mut item = file.items.remove(0);
    let attributes = match &mut item {
        Item::Fn(function) => &mut function.attrs,
        Item::Impl(block) => &mut block.attrs,
        Item::Struct(item) => &mut item.attrs,
        _ => panic!("{text}"),
    };
    let (name, options) = take(attributes).unwrap();
    let (item, paths) = (quote!(#item), Paths::handlers());
    let expanded = match &*name {
        "tools" => block::expand(options, item, &paths),
        "tool" => function::expand(Kind::Tool, options, item, &paths),
        _ => function::expand(Kind::Prompt, options, item, &paths),
    };
    expanded.expect_err(text).0.to_string()
}

#[test]
fn a_message_names_the_mistake() {
    for (text, message) in [
        ("#[tool] fn f(place: String) {}", "a tool needs a description"),
        ("/// D\n#[tool(readonly)] fn f() {}", "unknown option `readonly`: there are `name`"),
        ("/// D\n#[prompt(read_only)] fn f() {}", "unknown option `read_only`"),
        ("/// D\n#[tool] fn f(place: &str) {}", "take an owned type such as `String`"),
        ("/// D\n#[tool] fn f((x, y): (u8, u8)) {}", "an argument has a name"),
        ("/// D\n#[tool] fn f(call: Call<A>, place: String) {}", "take either one `Call<T>`"),
        ("/// D\n#[tool] fn f<T>(place: T) {}", "a tool has no generic parameters"),
        ("/// D\n#[tool(blocking)] async fn f() {}", "a `blocking` function is not `async`"),
        (
            "/// D\n#[tool] fn f(a: State<A>, b: State<B>, c: State<C>, d: State<D>) {}",
            "a handler takes up to 3 states",
        ),
        ("/// D\n#[tool] fn f(&self) {}", "put `#[tools]` on the `impl` block"),
        ("/// D\n#[tool] struct S;", "`#[tool]` is for functions"),
        ("#[tools] fn f() {}", "`#[tools]` is for `impl` blocks"),
        ("#[tools] impl S { fn f(&self) {} }", "no method is marked"),
        ("#[tools] impl T for S { /** D */ #[tool] fn f(&self) {} }", "own `impl` block"),
        ("#[tools] impl S { /** D */ #[tool] fn f(&mut self) {} }", "take `&self`"),
        ("#[tools] impl S { /** D */ #[tool(local)] fn f(&self) {} }", "`#[tools(local)]`"),
        ("#[tools(x)] impl S { /** D */ #[tool] fn f(&self) {} }", "there are `pub` and `local`"),
    ] {
        let told = mistake(text);
        assert!(told.contains(message), "{text}: {told}");
    }
}
