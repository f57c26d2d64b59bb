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

/// Returns the text of doc comments, without the space that follows the slashes.
pub(crate) fn doc_text(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(meta) if meta.path.is_ident("doc") => match &meta.value {
            Expr::Lit(ExprLit { lit: Lit::Str(line), .. }) => Some(line.value()),
            _ => None,
        },
        _ => None,
    });
    let lines: Vec<String> =
        lines.map(|line| line.strip_prefix(' ').unwrap_or(&line).trim_end().to_owned()).collect();
    lines.join("\n").trim().to_owned()
}
