use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::meta::ParseNestedMeta;
use syn::parse::Parser;
use syn::{Attribute, Expr, ExprLit, Lit, LitBool, LitStr, Meta, Token};

use crate::item::Kind;

/// The options of `#[tool]` and `#[prompt]`.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) name: Option<LitStr>,
    pub(crate) description: Option<LitStr>,
    pub(crate) blocking: bool,
    pub(crate) local: bool,
    /// Calls of methods of `ServerItem`, in their order.
    pub(crate) calls: TokenStream,
}

impl Options {
    pub(crate) fn parse(kind: Kind, tokens: TokenStream) -> syn::Result<Self> {
        let mut options = Self::default();
        syn::meta::parser(|meta| options.option(kind, &meta)).parse2(tokens)?;
        Ok(options)
    }

    fn option(&mut self, kind: Kind, meta: &ParseNestedMeta<'_>) -> syn::Result<()> {
        let name = meta.path.to_token_stream().to_string();
        match (&*name, kind) {
            ("name", _) => self.name = Some(meta.value()?.parse()?),
            ("description", _) => self.description = Some(meta.value()?.parse()?),
            ("title", _) => {
                let title: LitStr = meta.value()?.parse()?;
                self.calls.extend(quote!(.title(#title)));
            }
            ("requires", _) => {
                let scope: LitStr = meta.value()?.parse()?;
                self.calls.extend(quote!(.requires(#scope)));
            }
            ("blocking", _) => self.blocking = true,
            ("local", _) => self.local = true,
            ("read_only", Kind::Tool) => self.calls.extend(quote!(.read_only())),
            ("idempotent", Kind::Tool) => self.calls.extend(quote!(.idempotent())),
            ("destructive", Kind::Tool) => {
                let value = flag(meta)?;
                self.calls.extend(quote!(.destructive(#value)));
            }
            ("open_world", Kind::Tool) => {
                let value = flag(meta)?;
                self.calls.extend(quote!(.open_world(#value)));
            }
            _ => {
                let hints = match kind {
                    Kind::Tool => "`read_only`, `destructive`, `idempotent`, `open_world`, ",
                    Kind::Prompt => "",
                };
                return Err(meta.error(format!(
                    "unknown option `{name}`: there are `name`, `title`, `description`, \
                     {hints}`requires`, `blocking` and `local`"
                )));
            }
        }
        Ok(())
    }
}

/// Reads `name` as true, or `name = false`.
fn flag(meta: &ParseNestedMeta<'_>) -> syn::Result<bool> {
    if !meta.input.peek(Token![=]) {
        return Ok(true);
    }
    Ok(meta.value()?.parse::<LitBool>()?.value)
}

/// Returns the text of doc comments as an expression, if there is any.
pub(crate) fn doc_text(attributes: &[Attribute]) -> Option<TokenStream> {
    let (mut parts, mut text) = (Vec::new(), String::new());
    for attribute in attributes {
        let Meta::NameValue(meta) = &attribute.meta else { continue };
        if !meta.path.is_ident("doc") {
            continue;
        }
        if let Expr::Lit(ExprLit { lit: Lit::Str(comment), .. }) = &meta.value {
            text.push_str(&undecorated(&comment.value()));
        } else {
            // A macro such as `include_str!`.
            let value = &meta.value;
            parts.push(quote!(#text, #value));
            text.clear();
        }
        text.push('\n');
    }
    if parts.is_empty() {
        return literal(text.trim());
    }
    Some(quote!(::core::concat!(#(#parts,)* #text).trim()))
}

/// Returns the expression of a text that is not empty.
pub(crate) fn literal(text: &str) -> Option<TokenStream> {
    (!text.is_empty()).then(|| quote!(#text))
}

/// Returns a doc comment without what rustdoc removes: the space that follows the slashes, or the
/// stars and the indentation of a block.
fn undecorated(comment: &str) -> String {
    let comment = comment.trim_end();
    let Some((first, rest)) = comment.split_once('\n') else {
        return comment.strip_prefix(' ').unwrap_or(comment).to_owned();
    };
    let indent_of = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let column = indent_of(rest);
    // Stars at different columns, or at some lines only, are lists.
    let starless = rest.lines().map(|line| {
        let text = line.trim_start_matches([' ', '\t']).strip_prefix('*')?;
        (indent_of(line) == column && (text.is_empty() || text.starts_with(' '))).then_some(text)
    });
    let rest = starless.collect::<Option<Vec<_>>>().unwrap_or_else(|| rest.lines().collect());
    let lines = [&[first], &*rest].concat();
    let written = lines.iter().filter(|line| !line.trim().is_empty());
    let indent = written.map(|line| indent_of(line)).min().unwrap_or_default();
    let lines = lines.iter().map(|line| line.get(indent..).unwrap_or_default().trim_end());
    lines.collect::<Vec<_>>().join("\n")
}
