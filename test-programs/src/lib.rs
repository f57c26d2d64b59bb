//! Finds the programs that tests need, and ports for them, and skips the tests without them.
//!
//! ```no_run
//! # fn test() {
//! let Some(browser) = test_programs::find(&["chromium", "google-chrome"]) else { return };
//! # }
//! ```

#![forbid(unsafe_code)]

use std::ffi::OsStr;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::{AtomicU16, Ordering};

/// Returns the first of these programs that is installed: names for one purpose, the preferred one
/// first. `None` if the test is skipped, and then it must return.
///
/// A skipped test passes. It is reported in one line on standard error, which `.ci/run` counts:
/// `skipped: TEST: needs PROGRAM`.
///
/// # Panics
///
/// If none is installed and the environment says `CI=true`.
#[must_use]
#[track_caller]
pub fn find<'a>(names: &[&'a str]) -> Option<&'a str> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if let Some(found) = installed(names, &path) {
        return Some(found);
    }
    let thread = std::thread::current();
    let notice = notice(thread.name().unwrap_or("a test"), names);
    let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(!is_ci, "{notice}, and CI=true: install it");
    // The output of the printing macros is captured, so that the line would not be visible.
    let _ = std::io::stderr().write_all(format!("skipped: {notice}\n").as_bytes());
    None
}

/// Returns a port of the loopback interface for a program that cannot choose one itself. It was not
/// returned before in this process: of two programs on one port, the second would end, and its test
/// would use the first. Neither it nor the port 10,000 above, which a node of a Redis cluster uses as
/// well, is one that systems give to outgoing connections: these might take it before the program
/// listens, or while it is restarted.
#[must_use]
pub fn free_port() -> u16 {
    const FIRST: u16 = 12_000;
    const COUNT: u16 = 10_000;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    // Processes that test at the same time start at different ports.
    let first = std::process::id().wrapping_mul(64) % u32::from(COUNT);
    loop {
        let number = first + u32::from(NEXT.fetch_add(1, Ordering::Relaxed));
        let Ok(port) = u16::try_from(u32::from(FIRST) + number % u32::from(COUNT)) else {
            continue;
        };
        if is_free(port) && is_free(port + COUNT) {
            return port;
        }
    }
}

/// Searches the folders of `path`, a value of the variable `PATH`.
fn installed<'a>(names: &[&'a str], path: &OsStr) -> Option<&'a str> {
    let is_file = |folder: &Path, name: &str| {
        folder.join(name).is_file()
            || folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX)).is_file()
    };
    let mut names = names.iter().copied();
    names.find(|name| std::env::split_paths(path).any(|folder| is_file(&folder, name)))
}

fn notice(test: &str, names: &[&str]) -> String {
    format!("{test}: needs {}", names.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_installed_program_is_found_in_any_folder_of_the_path() {
        let name = std::env::current_exe().unwrap();
        let (folder, name) = (name.parent().unwrap(), name.file_stem().unwrap().to_str().unwrap());
        let path = std::env::join_paths([Path::new("/nowhere"), folder]).unwrap();
        assert_eq!(installed(&["no-such-program", name], &path), Some(name));
        assert_eq!(installed(&["no-such-program"], &path), None);
        assert_eq!(installed(&[name], OsStr::new("")), None);
    }

    #[test]
    fn a_notice_names_the_test_and_the_programs() {
        assert_eq!(notice("a_test", &["one", "another"]), "a_test: needs one or another");
    }

    #[test]
    fn without_the_program_a_test_is_skipped_and_in_continuous_integration_it_fails() {
        const MISSING: &str = "TEST_PROGRAMS_MISSING";
        if std::env::var_os(MISSING).is_some() {
            assert_eq!(find(&["no-such-program"]), None);
            return;
        }
        let run = |ci: Option<&str>| {
            let mut again = std::process::Command::new(std::env::current_exe().unwrap());
            again.arg("without_the_program").env(MISSING, "1").env_remove("CI");
            if let Some(ci) = ci {
                again.env("CI", ci);
            }
            again.output().unwrap()
        };
        for ci in [None, Some("false")] {
            let skipped = run(ci);
            assert!(skipped.status.success(), "{skipped:?}");
            let said = String::from_utf8(skipped.stderr).unwrap();
            let lines: Vec<&str> = said.lines().filter(|it| it.contains("skipped: ")).collect();
            assert!(
                matches!(lines[..], [line] if line.ends_with(": needs no-such-program")),
                "{said}"
            );
        }
        assert!(!run(Some("true")).status.success());
    }
}
