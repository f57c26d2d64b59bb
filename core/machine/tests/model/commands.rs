//! The commands for operations of the application. Numbers are resolved to handles.

use std::sync::LazyLock;

use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::{Applied, CallHandle, CallOptions, CommandError};
use mcp_sansio::protocol::{Method, Verbatim};

use crate::outcome::Outcome;

/// The parameters of every message.
pub(crate) static OBJECT: RawJson<'static> = RawJson::EMPTY_OBJECT;

/// The same parameters, written as they are given at any revision.
pub(crate) static VERBATIM: Verbatim<'static, RawJson<'static>> = Verbatim(&OBJECT);

pub(crate) static OPTIONS: LazyLock<CallOptions<'static>> = LazyLock::new(CallOptions::default);

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
