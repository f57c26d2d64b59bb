//! `completions`: scripts that complete the command line in a shell. The text of the help is where
//! they find the subcommands and the options.

use std::fmt::Write as _;

use mcp_sansio::Revision;
use mcp_sansio_cli::arguments::{Argument, Arguments, Stop};

use crate::options::USAGE;
use crate::terminal::show;

/// A subcommand or an option in the help.
struct Entry<'a> {
    /// With `--` if it is an option.
    name: &'a str,
    /// The name of the value, for an option that has one.
    value: Option<&'a str>,
    about: String,
}

/// Prints the script for the shell that the arguments name.
pub(crate) fn print(mut arguments: Arguments) -> Result<(), Stop> {
    let (_name, shell) = (arguments.shift()?, arguments.shift()?);
    let Some(Argument::Word(shell)) = shell else {
        return Err(Stop::wrong("`completions` needs the name of a shell: bash, zsh or fish"));
    };
    let script = match shell.as_str() {
        "bash" => bash(),
        "zsh" => zsh(),
        "fish" => fish(),
        _ => {
            let known = "the known ones are bash, zsh and fish";
            return Err(Stop::Wrong(format!("unknown shell `{shell}`; {known}")));
        }
    };
    if arguments.first().is_some() {
        return Err(Stop::wrong("`completions` takes the name of one shell"));
    }
    show(script.trim_end());
    Ok(())
}

fn entries() -> impl Iterator<Item = Entry<'static>> {
    let mut entries: Vec<Entry<'static>> = Vec::new();
    for line in USAGE.lines() {
        match (entry(line), entries.last_mut()) {
            (Some(entry), _) => entries.push(entry),
            (None, Some(entry)) if line.starts_with("        ") => {
                entry.about = format!("{} {}", entry.about, line.trim());
            }
            _ => {}
        }
    }
    entries.into_iter()
}

fn entry(line: &'static str) -> Option<Entry<'static>> {
    let line = line.strip_prefix("  ")?;
    let (usage, about) = line.split_once("  ")?;
    let mut words = usage.split(' ');
    let name = words.next().filter(|name| name.starts_with(|it| matches!(it, 'a'..='z' | '-')));
    Some(Entry { name: name?, value: words.next(), about: about.trim().into() })
}

fn subcommands() -> impl Iterator<Item = Entry<'static>> {
    entries().filter(|entry| !entry.name.starts_with('-'))
}

fn options() -> impl Iterator<Item = Entry<'static>> {
    entries().filter(|entry| entry.name.starts_with("--"))
}

/// The values of an option.
enum Values {
    Files,
    Words(String),
    /// A text that cannot be completed.
    Text,
}

impl Entry<'_> {
    fn values(&self) -> Option<Values> {
        Some(match self.value? {
            "FILE" | "PATH" => Values::Files,
            "R" => Values::Words(Revision::ALL.map(Revision::as_str).join(" ")),
            "NAME" => Values::Words("tokio".into()),
            _ => Values::Text,
        })
    }

    /// The description in a script: the first part, without the characters that a shell reads.
    fn about(&self) -> String {
        let about = self.about.split([';', '(', ':']).next().unwrap_or_default();
        about.trim().replace(['\'', '"', '`', '[', ']', '\\'], "")
    }
}

fn names(entries: impl Iterator<Item = Entry<'static>>) -> String {
    entries.map(|entry| entry.name).collect::<Vec<_>>().join(" ")
}

fn bash() -> String {
    let mut values = String::new();
    for option in options() {
        let name = option.name;
        // Writing to a string cannot fail, here and below.
        let _ = match option.values() {
            None => continue,
            Some(Values::Files) => {
                writeln!(values, "    {name}) COMPREPLY=($(compgen -f -- \"$word\")); return ;;")
            }
            Some(Values::Words(words)) => writeln!(
                values,
                "    {name}) COMPREPLY=($(compgen -W \"{words}\" -- \"$word\")); return ;;"
            ),
            Some(Values::Text) => writeln!(values, "    {name}) return ;;"),
        };
    }
    let (options, subcommands) = (names(options()), names(subcommands()));
    format!(
        r#"_mcp_inspect() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} earlier
    case ${{COMP_WORDS[COMP_CWORD - 1]}} in
{values}    esac
    for earlier in "${{COMP_WORDS[@]:1:COMP_CWORD - 1}}"; do
        # A command, or the arguments of a subcommand: files.
        case " {subcommands} -- " in *" $earlier "*)
            [[ $word == -* && $earlier != -- ]] || return ;;
        esac
    done
    case $word in
    -*) COMPREPLY=($(compgen -W "{options} --help" -- "$word")) ;;
    *) COMPREPLY=($(compgen -W "{subcommands}" -- "$word")) ;;
    esac
}}
complete -o bashdefault -o default -F _mcp_inspect mcp-inspect
"#
    )
}

fn zsh() -> String {
    let mut script = String::from("#compdef mcp-inspect\n_arguments \\\n");
    for option in options() {
        let (name, about) = (option.name, option.about());
        let values = match option.values() {
            None => String::new(),
            Some(Values::Files) => ":file:_files".into(),
            Some(Values::Words(words)) => format!(":value:({words})"),
            Some(Values::Text) => ":value:".into(),
        };
        let _ = writeln!(script, "    '{name}[{about}]{values}' \\");
    }
    script.push_str("    '1:subcommand:((");
    for subcommand in subcommands() {
        let _ = write!(script, " {}\\:\"{}\"", subcommand.name, subcommand.about());
    }
    script.push_str(" ))' \\\n    '*:argument:_files'\n");
    script
}

fn fish() -> String {
    let mut script = String::new();
    for subcommand in subcommands() {
        let (name, about) = (subcommand.name, subcommand.about());
        let _ = writeln!(
            script,
            "complete -c mcp-inspect -n __fish_use_subcommand -f -a {name} -d '{about}'"
        );
    }
    for option in options() {
        let (name, about) = (option.name.trim_start_matches('-'), option.about());
        let values = match option.values() {
            None => String::new(),
            Some(Values::Files) => " -r -F".into(),
            Some(Values::Words(words)) => format!(" -x -a '{words}'"),
            Some(Values::Text) => " -x".into(),
        };
        let _ = writeln!(script, "complete -c mcp-inspect -l {name}{values} -d '{about}'");
    }
    script
}
