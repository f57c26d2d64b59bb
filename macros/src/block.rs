//! `#[tools]` on an `impl` block.

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Attribute, Error, Ident, ImplItem, ImplItemFn, ItemImpl, Meta, Token, Visibility};

use crate::item::{Item, Kind};
use crate::paths::Paths;

/// The options of `#[tools]`.
struct Options {
    visibility: Visibility,
    local: bool,
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut visibility: Visibility = input.parse()?;
        if matches!(visibility, Visibility::Inherited) {
            visibility = syn::parse_quote!(pub(crate));
        } else if input.peek(Token![,]) {
            input.parse::<Token![,]>()?;
        }
        let word: Option<Ident> = input.parse()?;
        match &word {
            Some(word) if word != "local" => {
                Err(Error::new(word.span(), "unknown option: there are `pub` and `local`"))
            }
            word => Ok(Self { visibility, local: word.is_some() }),
        }
    }
}

/// Returns the block with the function `add_tools`; or the mistake and the block.
pub(crate) fn expand(
    options: TokenStream,
    item: TokenStream,
    paths: &Paths,
) -> Result<TokenStream, (Error, TokenStream)> {
    let mut block: ItemImpl = match syn::parse2(item.clone()) {
        Ok(block) => block,
        Err(error) => {
            return Err((Error::new(error.span(), "`#[tools]` is for `impl` blocks"), item));
        }
    };
    match add_tools(options, &mut block, paths) {
        Ok(function) => {
            block.items.push(function);
            Ok(quote!(#block))
        }
        Err(error) => Err((error, without_attributes(block))),
    }
}

fn add_tools(options: TokenStream, block: &mut ItemImpl, paths: &Paths) -> syn::Result<ImplItem> {
    let Options { visibility, local } = syn::parse2(options)?;
    if let Some((path, _)) = &block.trait_ {
        return Err(Error::new(path.span(), "put `#[tools]` on the type's own `impl` block"));
    }
    let (mut statements, mut chain) = (TokenStream::new(), quote!(server));
    let mut is_empty = true;
    for method in &mut block.items {
        let ImplItem::Fn(method) = method else { continue };
        let Some((kind, options)) = take_attribute(&mut method.attrs)? else { continue };
        let ImplItemFn { attrs, sig, .. } = method;
        let mut item = Item::read(kind, options, attrs, sig, true)?;
        if item.is_local() {
            return Err(Error::new(sig.ident.span(), "write `#[tools(local)]` on the block"));
        }
        if local {
            item.make_local();
        }
        let (arguments, mut expression) = item.expand(paths);
        if !arguments.is_empty() {
            expression = quote!({ #arguments #expression });
        }
        is_empty = false;
        // A condition is for a statement, not for a part of a chain.
        let conditions: Vec<_> = attrs.iter().filter(|it| it.path().is_ident("cfg")).collect();
        if conditions.is_empty() {
            chain = quote!(#chain.add_item(#expression));
        } else {
            statements.extend(quote! {
                let server = #chain;
                #(#conditions)*
                let server = server.add_item(#expression);
            });
            chain = quote!(server);
        }
    }
    if is_empty {
        return Err(Error::new(
            block.self_ty.span(),
            "no method is marked with `#[tool]` or `#[prompt]`",
        ));
    }
    let root = &paths.root;
    let server = if local { quote!(#root::Server<#root::Local>) } else { quote!(#root::Server) };
    syn::parse2(quote! {
        /// Adds the tools and prompts of this type, which is a state of the server.
        #visibility fn add_tools(server: #server) -> #server {
            #statements
            #chain
        }
    })
}

/// Removes `#[tool]` or `#[prompt]`, and returns its options.
fn take_attribute(attributes: &mut Vec<Attribute>) -> syn::Result<Option<(Kind, TokenStream)>> {
    let kind_of = |attribute: &Attribute| {
        let name = attribute.path().segments.last()?;
        [Kind::Tool, Kind::Prompt].into_iter().find(|kind| name.ident == kind.as_str())
    };
    let Some(index) = attributes.iter().position(|it| kind_of(it).is_some()) else {
        return Ok(None);
    };
    let attribute = attributes.remove(index);
    let Some(kind) = kind_of(&attribute) else { return Ok(None) };
    let options = match attribute.meta {
        Meta::Path(_) => TokenStream::new(),
        Meta::List(list) => list.tokens,
        Meta::NameValue(meta) => {
            return Err(Error::new(meta.span(), "write the options in parentheses"));
        }
    };
    if let Some(second) = attributes.iter().find(|it| kind_of(it).is_some()) {
        return Err(Error::new(second.span(), "a method is one tool or prompt"));
    }
    Ok(Some((kind, options)))
}

/// Returns the block without attributes that are errors of their own.
fn without_attributes(mut block: ItemImpl) -> TokenStream {
    for item in &mut block.items {
        let ImplItem::Fn(method) = item else { continue };
        // Further attributes are reported already.
        while let Ok(Some(_)) = take_attribute(&mut method.attrs) {}
        for input in &mut method.sig.inputs {
            if let syn::FnArg::Typed(parameter) = input {
                parameter.attrs.clear();
            }
        }
    }
    quote!(#block)
}
