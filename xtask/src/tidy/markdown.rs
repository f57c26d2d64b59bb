//! Markdown: trailing white space, tabs, and broken links.

use std::path::{Component, Path, PathBuf};

/// Adds the errors of the file `path` to `errors`; `exists` returns whether a file of the project
/// exists.
pub(super) fn check(
    path: &Path,
    text: &str,
    exists: impl Fn(&Path) -> bool,
    errors: &mut Vec<String>,
) {
    let name = path.display();
    let mut fence = false;
    for (number, line) in (1..).zip(text.lines()) {
        if line.contains('\t') {
            errors.push(format!("{name}:{number}: a tab"));
        }
        if line.ends_with(' ') {
            errors.push(format!("{name}:{number}: trailing white space"));
        }
        if line.trim_start().starts_with("```") {
            fence = !fence;
        } else if !fence {
            for link in links(line) {
                let target = resolve(path, link);
                if !target.is_some_and(|target| exists(&target)) {
                    errors.push(format!("{name}:{number}: `{link}` leads nowhere"));
                }
            }
        }
    }
}

/// The address of the project's files on the web, which the guide uses to link to files outside its
/// folder.
const REPOSITORY: &str = "https://github.com/mcp-sansio/mcp-sansio/blob/main/";

/// Returns the links of a line within the project, without fragments: `[text](path#part)` and
/// `[name]: path`.
fn links(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = line;
    if let Some(definition) = line.strip_prefix('[').and_then(|it| it.split_once("]: ")) {
        found.extend(definition.1.split_whitespace().next());
    }
    while let Some(start) = rest.find(['`', ']']) {
        let tail = &rest[start + 1..];
        if rest[start..].starts_with('`') {
            rest = tail.find('`').map_or("", |end| &tail[end + 1..]);
        } else if let Some((link, _)) = tail.strip_prefix('(').and_then(|it| it.split_once(')')) {
            found.extend(link.split_whitespace().next());
            rest = tail;
        } else {
            rest = tail;
        }
    }
    let is_inside = |link: &str| {
        link.starts_with(REPOSITORY) || !link.contains("://") && !link.starts_with("mailto:")
    };
    found.retain(|link| is_inside(link));
    let found = found.into_iter().map(|link| link.split('#').next().unwrap_or(link));
    found.filter(|link| !link.is_empty()).collect()
}

/// Returns the file that `link` in `file` names; `None` if it is outside the project.
fn resolve(file: &Path, link: &str) -> Option<PathBuf> {
    if let Some(path) = link.strip_prefix(REPOSITORY) {
        return Some(PathBuf::from(path));
    }
    let mut path = match link.strip_prefix('/') {
        Some(_) => PathBuf::new(),
        None => file.parent()?.to_path_buf(),
    };
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => {
                path.pop().then_some(())?;
            }
            Component::Normal(part) => path.push(part),
            _ => {}
        }
    }
    Some(path)
}

#[cfg(test)]
mod tests;
