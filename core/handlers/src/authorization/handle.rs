use crate::client::{Client, Command};
use crate::mailbox::SendError;

impl Client {
    /// Signs in now, without waiting for the server to require a token: loads the stored credential
    /// or asks the user. The outcome is reported to the [observers](super::Authorization::observe)
    /// of the authorization.
    /// authorization are shown.
    /// Does nothing while a sign-in is in progress, or on a connection without an
    /// [`Authorization`](super::Authorization).
    /// [`Authorization`](super::Authorization).
    ///
    /// # Errors
    ///
    /// [`SendError`]: the command queue is full, or the connection is closed.
    pub fn authorize(&self) -> Result<(), SendError> {
        self.command(Command::Authorize)
    }

    /// Signs out: drops the token of this connection and removes it from the store. A sign-in in
    /// progress is abandoned, and the calls that wait for it fail. The next request that the server
    /// refuses for lack of a token starts a new sign-in.
    ///
    /// Other open connections have tokens of their own and keep them.
    ///
    /// # Errors
    ///
    /// [`SendError`]: the command queue is full, or the connection is closed and its token dropped.
    pub fn forget_authorization(&self) -> Result<(), SendError> {
        self.command(Command::ForgetAuthorization)
    }
}
