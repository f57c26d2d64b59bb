//! Handlers that return an error of the application.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use core::error::Error;
use core::fmt;
use core::marker::PhantomData;

use super::context::{FromRequest, RequestParts};
use super::function::{Handler, HandlerInput};
use super::reply::{HandlerError, IntoOutcome, Outcome};
use super::state::StateTypes;
use super::threading::Threading;

/// An error of the application that a [`fallible`] handler can return: it decides what the client
/// sees.
///
/// It is implemented for texts, which the client sees unchanged, and for `Box<dyn Error>` and (with
/// the feature `anyhow`) `anyhow::Error`, which are [internal](HandlerError::Internal) errors.
///
/// ```
/// use mcp_sansio::jsonrpc::{ErrorCode, ErrorObject, RawJson};
/// use mcp_sansio_handlers::{HandlerError, IntoHandlerError};
///
/// #[derive(Debug)]
/// enum StoreError { NoSuchNote(String), Quota, Disk(std::io::Error) }
///
/// impl IntoHandlerError for StoreError {
///     fn into_handler_error(self) -> HandlerError {
///         match self {
///             // The model can try another title.
///             Self::NoSuchNote(title) => HandlerError::failed(format!("no note {title:?}")),
///             // A protocol error, for the program of the client.
///             Self::Quota => {
///                 let error = ErrorObject::new(ErrorCode(429), "too many notes");
///                 HandlerError::Protocol(error.with_data(RawJson::EMPTY_OBJECT))
///             }
///             // A detail that no client should see.
///             Self::Disk(_) => HandlerError::failed("the notes cannot be read now"),
///         }
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "it is not known how a handler shows the error `{Self}`",
    note = "implement `IntoHandlerError` for it"
)]
pub trait IntoHandlerError {
    /// Converts the error into the one that the client gets.
    fn into_handler_error(self) -> HandlerError;
}

impl IntoHandlerError for HandlerError {
    fn into_handler_error(self) -> HandlerError {
        self
    }
}

macro_rules! shown_texts {
    ($($text:ty)+) => { $(
        impl IntoHandlerError for $text {
            fn into_handler_error(self) -> HandlerError {
                HandlerError::failed(self)
            }
        }
    )+ };
}

shown_texts!(String &'static str Cow<'static, str>);

// A `HandlerError` that `?` put into one of these errors is taken out again unchanged.
macro_rules! any_errors {
    ($($(#[$feature:meta])? $error:ty, $from:expr;)+) => { $(
        $(#[$feature])?
        impl IntoHandlerError for $error {
            fn into_handler_error(self) -> HandlerError {
                match self.downcast::<Carried>() {
                    Ok(carried) => carried.into_inner(),
                    Err(error) => HandlerError::Internal(error.to_string()),
                }
            }
        }

        $(#[$feature])?
        impl From<HandlerError> for $error {
            fn from(error: HandlerError) -> Self {
                $from(Carried(error))
            }
        }
    )+ };
}

any_errors! {
    Box<dyn Error + Send + Sync>, Box::new;
    Box<dyn Error>, Box::new;
    #[cfg(feature = "anyhow")] anyhow::Error, anyhow::Error::new;
}

/// A handler's error as a standard error. `HandlerError` does not implement [`Error`], so that `?` can
/// convert any standard error into it.
struct Carried(HandlerError);

impl Carried {
    fn into_inner(self) -> HandlerError {
        self.0
    }
}

impl fmt::Debug for Carried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for Carried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Error for Carried {}

/// A handler that returns an error of the application; returned by [`fallible`].
#[derive(Clone, Copy, Debug)]
pub struct Fallible<F>(pub(super) F);

/// Wraps a handler that returns a `Result` with an error of the application, whose
/// [`IntoHandlerError`] decides what the client sees.
///
/// Other handlers return [`HandlerError`], into which `?` converts any error. Because that is the
/// only error of theirs, the compiler infers it for a closure that ends with `Ok(..)`.
///
/// ```
/// use mcp_sansio_handlers::{Call, HandlerError, IntoHandlerError, NoArguments, Server, fallible};
///
/// #[derive(Debug)]
/// struct Unplugged;
///
/// impl IntoHandlerError for Unplugged {
///     fn into_handler_error(self) -> HandlerError {
///         HandlerError::failed("the sensor is unplugged: plug it in and try again")
///     }
/// }
///
/// async fn read(_: Call<NoArguments>) -> Result<String, Unplugged> {
///     Err(Unplugged)
/// }
///
/// type AnyError = Box<dyn std::error::Error + Send + Sync>;
///
/// fn calibrate(_: Call<NoArguments>) -> Result<String, AnyError> {
///     Ok(format!("offset {}", "0.5".parse::<f32>()?))
/// }
///
/// let server = Server::new("thermometer", "1.0.0")
///     .tool("read", "The temperature", fallible(read))
///     .tool("calibrate", "Calibrates the sensor", fallible(calibrate));
/// # let host = mcp_sansio_handlers::Host::new("demo", "1.0.0");
/// # let (client, mut pair) = mcp_sansio_test::connect(&server, &host);
/// # let result = pair.run(client.call_tool("read", &NoArguments {}))?;
/// # assert_eq!(result.is_error, Some(true));
/// # let result = pair.run(client.call_tool("calibrate", &NoArguments {}))?;
/// # assert_eq!(result.first_text(), Some("offset 0.5"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub const fn fallible<F>(function: F) -> Fallible<F> {
    Fallible(function)
}

/// Marks handlers of the kind `Of` whose errors are those of the application.
#[derive(Debug)]
pub struct WithError<Of>(PhantomData<Of>);

/// Marks a function that `M` marks and that returns an error of the application.
#[derive(Debug)]
pub struct FallibleMarker<M>(PhantomData<M>);

impl<M: HandlerInput> HandlerInput for FallibleMarker<M> {
    type In = M::In;
    type Out = M::Out;
}

#[diagnostic::do_not_recommend]
impl<K, Of, M, F> Handler<K, Of, FallibleMarker<M>> for Fallible<F>
where
    K: Threading,
    F: Handler<K, WithError<Of>, M>,
{
    fn into_function(self) -> K::Function {
        self.0.into_function()
    }

    fn states(&self) -> StateTypes {
        self.0.states()
    }
}

impl<Of, In: FromRequest<Of>> FromRequest<WithError<Of>> for In {
    fn from_request(received: RequestParts<'_, '_>) -> Result<Self, HandlerError> {
        <Self as FromRequest<Of>>::from_request(received)
    }
}

impl<Of, T, E> IntoOutcome<WithError<Of>> for Result<T, E>
where
    E: IntoHandlerError,
    Result<T, HandlerError>: IntoOutcome<Of>,
{
    fn into_outcome(self) -> Outcome {
        self.map_err(IntoHandlerError::into_handler_error).into_outcome()
    }
}
