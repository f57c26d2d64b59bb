//! The commands for operations of the application. Numbers are resolved to handles.

use mcp_sansio::Method;
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::{Applied, Body, CallHandle, CallOptions, CommandError, MaybeOwned};

use crate::outcome::Outcome;

/// The parameters of every message.
pub(crate) const OBJECT: Body<'static> = Body::Json(RawJson::EMPTY_OBJECT);

pub(crate) fn options() -> MaybeOwned<'static, CallOptions<'static>> {
    CallOptions::default().into()
}

pub(crate) fn method(name: &str) -> Method {
    Method::parse(name).expect("a method of the table")
}

/// Returns the item with this number, modulo the number of items.
pub(crate) fn nth<T>(known: &[T], number: usize) -> Option<&T> {
    known.get(number.checked_rem(known.len())?)
}

/// Records the result of a command.
pub(crate) fn note(
    applied: Result<Applied, CommandError>,
    calls: &mut Vec<CallHandle>,
    out: &mut Outcome,
) {
    match applied {
        Ok(applied) => calls.extend(applied.call()),
        Err(CommandError::Forbidden(_)) => out.refuse("forbidden"),
        Err(CommandError::OutOfPlace(_)) => out.refuse("out of place"),
        Err(CommandError::NotOpen) => out.refuse("not open"),
        Err(CommandError::Closed(_)) => out.refuse("closed"),
        Err(CommandError::NotDue) => out.refuse("not due"),
        Err(CommandError::NotDeclared(_)) => out.refuse("not declared"),
        Err(CommandError::InputNotAllowed(_)) => out.refuse("not allowed"),
        Err(other) => panic!("{other}"),
    }
}
