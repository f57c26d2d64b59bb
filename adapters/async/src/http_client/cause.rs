//! Causes of HTTP errors.

use std::error::Error;
use std::io;

/// Returns the first cause of type `T`, including `error` itself.
pub(super) fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// Returns the message of the innermost cause: the outer ones only name the step that failed.
pub fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut error = error;
    while let Some(cause) = error.source() {
        error = cause;
    }
    error.to_string()
}

/// Returns the operating system's error among the causes, or an equivalent one.
pub fn system(error: &(dyn Error + 'static)) -> io::Error {
    let cause = find::<io::Error>(error);
    match cause.map(|cause| (cause.raw_os_error(), cause.kind())) {
        Some((Some(code), _)) => io::Error::from_raw_os_error(code),
        Some((None, kind)) => io::Error::new(kind, innermost(error)),
        None => io::Error::other(innermost(error)),
    }
}
