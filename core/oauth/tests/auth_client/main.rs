//! The client side of authorization against scripted servers, on a virtual clock.

mod answers;
mod network;
mod secrets;
mod sent;

mod code;
mod discovery;
mod dpop;
mod grants;
mod hostile_metadata;
mod hostile_random;
mod hostile_response;
mod hostile_server;
mod hostile_token;
mod identity;
mod legacy;
mod locks;
mod migration;
mod odd_answers;
mod random;
mod registered_scopes;
mod renewal;
mod scopes;
mod stores;
mod waiting;
