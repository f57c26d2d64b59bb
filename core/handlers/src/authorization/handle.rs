use crate::client::{Client, Command};
use crate::context::SendError;

impl Client {
    /// Signs in now, without waiting for the server to ask for a token: what was kept is taken, or
    /// the user is asked. What comes of it, the [observers](super::Authorization::observe) of the
    /// authorization are shown.
    ///
    /// Nothing happens while a sign-in is under way, nor on a connection that has no
    /// [`Authorization`](super::Authorization).
    ///
    /// # Errors
    ///
    /// [`SendError`]: too many commands wait, or the connection is over.
    pub fn authorize(&self) -> Result<(), SendError> {
        self.command(Command::Authorize)
    }

    /// Signs out: the token of this connection is forgotten, and the store drops what it has kept of
    /// it. A sign-in that is under way is given up, and the calls that wait for it fail. When the
    /// server asks for a token again, everything starts over.
    ///
    /// Other connections that are open have tokens of their own.
    ///
    /// # Errors
    ///
    /// [`SendError`]: too many commands wait, or the connection is over, and its token with it.
    pub fn forget_authorization(&self) -> Result<(), SendError> {
        self.command(Command::ForgetAuthorization)
    }
}
