//! Derives files of `docs/rules` from a copy of the published specification: the names of its
//! pages, and its schemas without their texts.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::ledger::{PAGES, REVISIONS};
use crate::{Failure, files, reject};

/// The folder of the reduced schemas.
const SCHEMAS: &str = "docs/rules/schema";

/// The extension that has a schema of its own.
const TASKS: &str = "ext-tasks";

/// The keywords of a definition that are left out. The dialect is that of the whole schema.
const LEFT_OUT: [&str; 5] = ["$comment", "$schema", "description", "examples", "title"];

/// The keywords of a schema that tests compare with.
const KEYWORDS: [&str; 22] = [
    "$ref",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "default",
    "enum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "not",
    "oneOf",
    "pattern",
    "properties",
    "propertyNames",
    "required",
    "type",
];

/// The keywords whose values are not schemas.
const VALUES: [&str; 3] = ["const", "default", "enum"];

/// The endings of pages, which their names leave out.
const PAGE_ENDINGS: [&str; 2] = ["md", "mdx"];
/// Other files that contain rules.
const DATA_FILES: [&str; 5] =
    ["common.yaml", "metrics.yaml", "schema.json", "schema.ts", "spans.yaml"];

/// Runs `spec-facts DIRECTORY [--check]`.
pub(crate) fn run(arguments: &[&str]) -> Result<(), Failure> {
    let (published, check) = match arguments {
        [published] => (Path::new(published), false),
        [published, "--check"] | ["--check", published] => (Path::new(published), true),
        _ => return Err(Failure::Unable("spec-facts: expected DIRECTORY [--check]".into())),
    };
    let root = files::root();
    let mut derived = Vec::new();
    for name in REVISIONS.into_iter().chain([TASKS]) {
        let text = files::read(&published.join(name).join("schema.json"))?;
        let schema = serde_json::from_str(&text)
            .map_err(|error| error.to_string())
            .and_then(|schema| facts(&schema))
            .map_err(|error| Failure::Unable(format!("the schema of {name}: {error}")))?;
        derived.push((root.join(SCHEMAS).join(format!("{name}.json")), schema));
    }
    derived.push((root.join(PAGES), pages(published)?));

    let mut stale = Vec::new();
    for (path, text) in derived {
        if !check {
            std::fs::write(&path, text)?;
        } else if files::read(&path)? != text {
            stale.push(format!("{} differs from the published specification", path.display()));
        }
    }
    reject(&stale, "files are not up to date")
}

/// Returns a schema without its texts, with one definition per line. Fails if it has no definitions
/// or an unknown keyword.
fn facts(schema: &Value) -> Result<String, String> {
    let keyword = if schema.get("$defs").is_some() { "$defs" } else { "definitions" };
    let dialect = &schema["$schema"];
    let definitions = schema.get(keyword).ok_or("no definitions")?;
    let lines = sorted(definitions.as_object().ok_or("no definitions")?)
        .map(|(name, definition)| {
            let definition = reduced(definition).map_err(|error| format!("{name}: {error}"))?;
            Ok(format!("{}:{definition}", Value::from(name.as_str())))
        })
        .collect::<Result<Vec<_>, String>>()?;
    Ok(format!("{{\"$schema\":{dialect},\"{keyword}\":{{\n{}\n}}}}\n", lines.join(",\n")))
}

fn sorted(members: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    let mut members: Vec<_> = members.iter().collect();
    members.sort_by_key(|(name, _)| *name);
    members.into_iter()
}

/// Returns a schema without its texts, or the keyword that is not known.
fn reduced(schema: &Value) -> Result<Value, String> {
    match schema {
        Value::Object(members) => sorted(members)
            .filter(|(keyword, _)| !LEFT_OUT.contains(&keyword.as_str()))
            .map(|(keyword, value)| {
                let value = match (keyword.as_str(), value) {
                    (keyword, _) if !KEYWORDS.contains(&keyword) => {
                        return Err(format!("unknown keyword `{keyword}`"));
                    }
                    (keyword, value) if VALUES.contains(&keyword) => value.clone(),
                    ("properties", Value::Object(properties)) => sorted(properties)
                        .map(|(name, schema)| Ok((name.clone(), reduced(schema)?)))
                        .collect::<Result<_, String>>()?,
                    (_, value) => reduced(value)?,
                };
                Ok((keyword.clone(), value))
            })
            .collect(),
        Value::Array(schemas) => schemas.iter().map(reduced).collect(),
        value => Ok(value.clone()),
    }
}

/// Returns the names of the pages as citations give them, with the revision or extension in front.
fn pages(published: &Path) -> Result<String, Failure> {
    let mut folders: Vec<PathBuf> =
        REVISIONS.into_iter().chain([TASKS]).map(|name| published.join(name)).collect();
    for entry in std::fs::read_dir(published.join("extensions"))? {
        folders.push(entry?.path());
    }
    let mut names = Vec::new();
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        let source = folder.file_name().unwrap_or_default().display();
        for ending in PAGE_ENDINGS {
            let pages = files::with_extension(folder, ending)?.into_iter();
            names.extend(
                pages.map(|page| format!("{source}:{}", page.with_extension("").display())),
            );
        }
        let data = DATA_FILES.iter().filter(|file| folder.join(file).is_file());
        names.extend(data.map(|file| format!("{source}:{file}")));
    }
    names.sort();
    Ok(names.join("\n") + "\n")
}

#[cfg(test)]
mod tests;
