//! The construction of one item from a function's signature.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, FnArg, GenericArgument, Pat, PatType, PathArguments, PathSegment, Result,
    ReturnType, Signature, Type,
};

use crate::options::{Options, doc_text, literal};
use crate::paths::Paths;

/// A handler takes at most this many states.
const STATES_MAX: usize = 3;

/// The kind of item that a function becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Tool,
    Prompt,
}

impl Kind {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
        }
    }

    /// Returns the type of the definition.
    pub(crate) fn definition(self, paths: &Paths) -> TokenStream {
        let protocol = &paths.protocol;
        match self {
            Self::Tool => quote!(#protocol::Tool),
            Self::Prompt => quote!(#protocol::Prompt),
        }
    }
}

/// A parameter of the function.
enum Parameter {
    /// An argument that the client sends.
    Argument {
        attributes: Vec<Attribute>,
        name: Ident,
        kind: Type,
    },
    Call(Type),
    Context,
    State(Type),
}

/// A function as the handler of an item.
pub(crate) struct Item {
    kind: Kind,
    options: Options,
    name: String,
    /// An expression.
    description: TokenStream,
    parameters: Vec<Parameter>,
    /// The function, as the handler calls it.
    function: Ident,
    /// The place of its result, or of its name: the compiler reports a wrong result here.
    result: Span,
    /// Whether it is a method that takes `&self`.
    has_receiver: bool,
    is_method: bool,
    is_async: bool,
    is_result: bool,
    is_structured: bool,
}

impl Item {
    /// Reads a function. Takes the attributes of its parameters that belong to the arguments away
    /// from it.
    pub(crate) fn read(
        kind: Kind,
        options: TokenStream,
        attributes: &[Attribute],
        signature: &mut Signature,
        is_method: bool,
    ) -> Result<Self> {
        let options = Options::parse(kind, options)?;
        if let Some(generic) = signature.generics.params.first() {
            let what = kind.as_str();
            return Err(Error::new(generic.span(), format!("a {what} has no generic parameters")));
        }
        let function = signature.ident.clone();
        let name =
            options.name.as_ref().map_or_else(|| function.unraw().to_string(), |it| it.value());
        let description = match &options.description {
            Some(text) => literal(&text.value()),
            None => doc_text(attributes),
        };
        let Some(description) = description else {
            return Err(Error::new(
                function.span(),
                format!(
                    "a {} needs a description: add a doc comment, or `description = \"..\"`",
                    kind.as_str()
                ),
            ));
        };
        let (mut parameters, mut has_receiver) = (Vec::new(), false);
        for input in &mut signature.inputs {
            match input {
                FnArg::Receiver(receiver) if is_method => {
                    let text = quote!(#receiver).to_string().replace(' ', "");
                    if text != "&self" {
                        return Err(Error::new(
                            receiver.span(),
                            "the value is shared by all calls: take `&self`",
                        ));
                    }
                    has_receiver = true;
                }
                FnArg::Receiver(receiver) => {
                    return Err(Error::new(
                        receiver.span(),
                        "put `#[tools]` on the `impl` block of a method",
                    ));
                }
                FnArg::Typed(parameter) => parameters.push(Parameter::read(parameter)?),
            }
        }
        check_together(&parameters, has_receiver, signature)?;
        let is_async = signature.asyncness.is_some();
        if options.blocking && is_async {
            return Err(Error::new(
                signature.asyncness.span(),
                "a `blocking` function is not `async`",
            ));
        }
        let (is_result, value) = returned(&signature.output);
        let result = match &signature.output {
            ReturnType::Type(_, kind) => kind.span(),
            ReturnType::Default => function.span(),
        };
        Ok(Self {
            kind,
            name,
            description,
            parameters,
            function,
            result: Span::call_site().located_at(result),
            has_receiver,
            is_method,
            is_async,
            is_result,
            is_structured: kind == Kind::Tool && value.is_some_and(|it| it == "Structured"),
            options,
        })
    }

    pub(crate) const fn is_local(&self) -> bool {
        self.options.local
    }

    pub(crate) const fn make_local(&mut self) {
        self.options.local = true;
    }

    /// Returns the struct of the arguments, if there are any, and the expression of the item.
    pub(crate) fn expand(&self, paths: &Paths) -> (TokenStream, TokenStream) {
        let root = &located_at(&paths.root, self.result);
        let arguments_type = arguments_type(&self.function);
        let definition = self.arguments(&arguments_type);
        // Hygienic: they hide no name of the user, and no name of the user hides them.
        let own = |name: &str| Ident::new(name, Span::mixed_site());
        let (call, arguments, context, this) =
            (own("call"), own("arguments"), own("context"), own("this"));
        let own_call = self.parameters.iter().find_map(|it| match it {
            Parameter::Call(kind) => Some(kind),
            _ => None,
        });
        let has_arguments = !definition.is_empty();
        let wants_context = self.parameters.iter().any(|it| matches!(it, Parameter::Context));
        let call_type = match own_call {
            Some(kind) => quote!(#kind),
            None if has_arguments => quote!(#root::Call<#arguments_type>),
            None => quote!(#root::Call<#root::NoArguments>),
        };
        let pattern = if own_call.is_some() || has_arguments || wants_context {
            quote!(#call)
        } else {
            quote!(_)
        };
        // A call dereferences to its context, until its arguments are moved.
        let (unpack, arguments, context) = if has_arguments && wants_context {
            let unpack = quote!(let (#arguments, #context) = #call.into_parts(););
            (unpack, quote!(#arguments), &context)
        } else {
            (quote!(), quote!(#call.arguments), &call)
        };
        let mut states = TokenStream::new();
        if self.has_receiver {
            states.extend(quote!(, #this: #root::State<Self>));
        }
        let mut passed = Vec::new();
        for (index, parameter) in self.parameters.iter().enumerate() {
            passed.push(match parameter {
                Parameter::Argument { name, .. } => quote!(#arguments.#name),
                Parameter::Call(_) => quote!(#call),
                Parameter::Context => quote!(&#context),
                Parameter::State(kind) => {
                    let name = own(&format!("state_{index}"));
                    states.extend(quote!(, #name: #kind));
                    quote!(#name)
                }
            });
        }
        let function = &self.function;
        let callee = match (self.is_method, self.has_receiver) {
            (false, _) => quote!(#function),
            (true, true) => quote!(#this.#function),
            (true, false) => quote!(Self::#function),
        };
        let (keyword, wait) = if self.is_async {
            (quote_spanned!(self.result=> async), quote!(.await))
        } else {
            (quote!(), quote!())
        };
        let body = quote!(#unpack #callee(#(#passed),*) #wait);
        let result = self.result;
        let mut handler =
            quote_spanned!(result=> #keyword |#pattern: #call_type #states| { #body });
        if self.options.blocking {
            handler = quote_spanned!(result=> #root::blocking(#handler));
        }
        if self.is_result {
            handler = quote_spanned!(result=> #root::fallible(#handler));
        }
        let constructor = match (self.kind, self.is_structured) {
            (Kind::Prompt, _) => quote_spanned!(result=> prompt),
            (Kind::Tool, false) => quote_spanned!(result=> tool),
            (Kind::Tool, true) => quote_spanned!(result=> structured_tool),
        };
        let (name, description, calls) = (&self.name, &self.description, &self.options.calls);
        let item = quote_spanned! {result=>
            #root::ServerItem::#constructor(#name, #description, #handler) #calls
        };
        (definition, item)
    }

    /// Returns the type that an item's constructor returns.
    pub(crate) fn item_type(&self, paths: &Paths) -> TokenStream {
        let (root, definition) = (&paths.root, self.kind.definition(paths));
        if self.is_local() {
            quote!(#root::ServerItem<#definition, #root::Local>)
        } else {
            quote!(#root::ServerItem<#definition>)
        }
    }

    fn arguments(&self, name: &Ident) -> TokenStream {
        let fields = self.parameters.iter().filter_map(|it| match it {
            Parameter::Argument { attributes, name, kind } => {
                Some(quote!(#(#attributes)* #name: #kind))
            }
            _ => None,
        });
        let fields: Vec<TokenStream> = fields.collect();
        if fields.is_empty() {
            return TokenStream::new();
        }
        quote! {
            #[derive(::serde::Deserialize, ::schemars::JsonSchema)]
            struct #name { #(#fields),* }
        }
    }
}

impl Parameter {
    fn read(parameter: &mut PatType) -> Result<Self> {
        let kind = (*parameter.ty).clone();
        // Without angle brackets it is a type of the user's.
        if let Some(PathSegment { ident, arguments: PathArguments::AngleBracketed(_) }) =
            last_segment(&kind)
        {
            if ident == "Call" {
                return Ok(Self::Call(kind));
            }
            if ident == "State" {
                return Ok(Self::State(kind));
            }
        }
        if let Type::Reference(reference) = &kind {
            let is_context = last_segment(&reference.elem).is_some_and(|it| it.ident == "Context");
            return if is_context && reference.mutability.is_none() {
                Ok(Self::Context)
            } else {
                Err(Error::new(
                    kind.span(),
                    "an argument is decoded from a message, so it cannot be a reference: take an \
                     owned type such as `String`",
                ))
            };
        }
        let Pat::Ident(pattern) = &*parameter.pat else {
            return Err(Error::new(
                parameter.pat.span(),
                "an argument has a name, which clients send: destructure it in the body",
            ));
        };
        let name = pattern.ident.clone();
        let (moved, kept) = std::mem::take(&mut parameter.attrs).into_iter().partition(|it| {
            ["doc", "serde", "schemars"].iter().any(|name| it.path().is_ident(name))
        });
        parameter.attrs = kept;
        Ok(Self::Argument { attributes: moved, name, kind })
    }
}

/// Checks what the parameters of one function may be together.
fn check_together(
    parameters: &[Parameter],
    has_receiver: bool,
    signature: &Signature,
) -> Result<()> {
    let count = |wanted: fn(&Parameter) -> bool| parameters.iter().filter(|it| wanted(it)).count();
    let calls = count(|it| matches!(it, Parameter::Call(_)));
    let others = count(|it| matches!(it, Parameter::Argument { .. } | Parameter::Context));
    let states = count(|it| matches!(it, Parameter::State(_))) + usize::from(has_receiver);
    let span = signature.inputs.span();
    if calls > 1 || (calls == 1 && others > 0) {
        return Err(Error::new(
            span,
            "take either one `Call<T>`, which has the arguments and the context, or arguments and \
             a `&Context`",
        ));
    }
    if states > STATES_MAX {
        let message = format!("a handler takes up to {STATES_MAX} states, with `&self` among them");
        return Err(Error::new(span, message));
    }
    Ok(())
}

/// Returns `tokens` with another span.
fn located_at(tokens: &TokenStream, span: Span) -> TokenStream {
    let located = tokens.clone().into_iter().map(|mut token| {
        token.set_span(span);
        token
    });
    located.collect()
}

/// Whether a result is a `Result`, and the name of its value type.
fn returned(output: &ReturnType) -> (bool, Option<Ident>) {
    let ReturnType::Type(_, kind) = output else { return (false, None) };
    let Some(segment) = last_segment(kind) else { return (false, None) };
    if segment.ident != "Result" {
        return (false, Some(segment.ident.clone()));
    }
    let value = match &segment.arguments {
        PathArguments::AngleBracketed(arguments) => match arguments.args.first() {
            Some(GenericArgument::Type(value)) => last_segment(value),
            _ => None,
        },
        _ => None,
    };
    (true, value.map(|it| it.ident.clone()))
}

fn last_segment(kind: &Type) -> Option<&PathSegment> {
    match kind {
        Type::Path(path) => path.path.segments.last(),
        _ => None,
    }
}

/// Returns `ReadNoteArguments` for `read_note`. A leading underscore stays: a digit may follow it.
fn arguments_type(function: &Ident) -> Ident {
    let name = function.unraw().to_string();
    let underscore = if name.starts_with('_') { "_" } else { "" };
    let words = name.split('_').map(|word| {
        let mut letters = word.chars();
        let first = letters.next().map(|it| it.to_uppercase().to_string());
        first.unwrap_or_default() + letters.as_str()
    });
    format_ident!("{underscore}{}Arguments", words.collect::<String>())
}
