//! What a client needs of the operating system.

mod browser;
mod file_store;
mod lock;
pub mod loopback;
mod offload;
mod private_file;
pub(crate) mod sign;
mod system_support;

pub use browser::{BrowserError, open_in_browser};
pub use file_store::{FileStore, FileStoreError};
pub use private_file::UntrustedPath;
pub use sign::{KeyError, KeyFileError, SignError, Signer};
pub use system_support::with_system_support;
