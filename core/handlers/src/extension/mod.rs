//! Extensions of the protocol, as a package outside of this crate would write them.
//!
//! An extension has an identifier, settings that each side declares with its capabilities, and
//! methods of its own. [`ServerExtension`] and [`HostExtension`] are its two sides, registered with
//! [`Server::extension`](crate::Server::extension) and [`Host::extension`](crate::Host::extension).
//! An [`ExtensionMethod`] is a constant that both sides share: the row of a method in the table that
//! sending and receiving check, with the types of its parameters and its result.
//!
//! ```
//! use mcp_sansio_handlers::extension::{ExtensionMethod, HostExtension, ServerExtension};
//! use mcp_sansio_handlers::{Call, Host, NoArguments, Server};
//!
//! const ID: &str = "com.example/greetings";
//! const GREET: ExtensionMethod<Person, Greeting> = ExtensionMethod::new(ID, "greetings/greet");
//!
//! #[derive(serde::Deserialize, serde::Serialize)]
//! struct Person { name: String }
//!
//! #[derive(serde::Deserialize, serde::Serialize)]
//! struct Greeting { text: String }
//!
//! let greetings = ServerExtension::new(ID)?.request(&GREET, |call: Call<Person>| {
//!     Greeting { text: format!("Hello, {}!", call.arguments.name) }
//! });
//! let server = Server::new("greeter", "1.0.0").extension(greetings);
//! let host = Host::new("demo", "1.0.0").extension(HostExtension::new(ID)?);
//! # let (client, mut pair) = mcp_sansio_test::connect(&server, &host);
//! # let application = async {
//! let greeting = client.call_extension(&GREET, &Person { name: "Ada".into() }).await?;
//! assert_eq!(greeting.text, "Hello, Ada!");
//! # Ok::<(), mcp_sansio_handlers::ClientError>(()) };
//! # pair.run(application)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! An [`ExtensionNotification`] is the same for a notification, which either side may send.
//!
//! Nothing is declared unless it is registered. A handler of any method reads what the client
//! declared with [`Context::extension`](crate::Context::extension), an application what the server
//! declared with [`Session::extension`](crate::Session::extension).

pub(super) mod marker;
pub(super) mod method;
pub(super) mod notification;
pub(super) mod registration;
pub(super) mod server;

#[cfg(feature = "client")]
pub use super::client::extension::HostExtension;
pub use marker::{ForExtension, ForHostExtension};
pub use method::{ExtensionGateError, ExtensionMethod};
pub use notification::ExtensionNotification;
pub use registration::RegisteredExtension;
pub(super) use server::ExtensionTable;
pub use server::ServerExtension;
