//! `#[tool]` and `#[prompt]` on a function.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::ItemFn;
use syn::ext::IdentExt;

use crate::item::{Item, Kind};
use crate::paths::Paths;

/// Returns the function and the constructor of its item; or the mistake and the function.
pub(crate) fn expand(
    kind: Kind,
    options: TokenStream,
    item: TokenStream,
    paths: &Paths,
) -> Result<TokenStream, (syn::Error, TokenStream)> {
    let mut function: ItemFn = match syn::parse2(item.clone()) {
        Ok(function) => function,
        Err(error) => {
            let what = format!("`#[{}]` is for functions", kind.as_str());
            return Err((syn::Error::new(error.span(), what), item));
        }
    };
    let ItemFn { attrs, sig, .. } = &mut function;
    let item = match Item::read(kind, options, attrs, sig, false) {
        Ok(item) => item,
        // Attributes of parameters that are left would be another error.
        Err(error) => return Err((error, without_parameter_attributes(function))),
    };
    let (arguments, expression) = item.expand(paths);
    let (visibility, name, result) = (&function.vis, &function.sig.ident, item.item_type(paths));
    let constructor = format_ident!("{}_{}", name.unraw(), kind.as_str());
    let documentation = format!(" Returns the {} [`{}`].", kind.as_str(), name);
    Ok(quote! {
        #function

        #[doc = #documentation]
        #visibility fn #constructor() -> #result {
            #arguments
            #expression
        }
    })
}

fn without_parameter_attributes(mut function: ItemFn) -> TokenStream {
    for input in &mut function.sig.inputs {
        if let syn::FnArg::Typed(parameter) = input {
            parameter.attrs.clear();
        }
    }
    quote!(#function)
}
