//! `skills`: lists the skills of a server, and verifies all of their files.

use mcp_sansio_handlers::Client;
use mcp_sansio_tokio::skills::{LoadedSkill, OfferedSkill, SkillClient, SkillError};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::terminal::{say, show};

/// A skill, and its problems.
struct Inspected {
    label: String,
    skill: OfferedSkill,
    problems: Vec<String>,
}

/// Lists all skills, reads and verifies each file, and prints a line for each skill.
pub(crate) async fn list(client: &Client, server: &str, is_json: bool) -> Result<(), Failure> {
    let skills = SkillClient::new(server, client.clone());
    let listing = skills.list().await?;
    let mut broken: Vec<String> = Vec::new();
    for invalid in &listing.invalid {
        let uri = invalid.uri.as_deref().unwrap_or("an entry without URI");
        broken.push(format!("{uri}: {}", invalid.reason));
    }
    for (label, skill) in listing.labels().into_iter().zip(&listing.skills) {
        let problems = verify(&skills, skill).await?;
        let inspected = Inspected { label: label.into(), skill: skill.clone(), problems };
        if is_json {
            show(&inspected.json().to_string());
        } else {
            show(&inspected.text());
        }
        let uri = skill.uri();
        broken.extend(inspected.problems.iter().map(|problem| format!("{uri}: {problem}")));
    }
    if broken.is_empty() { Ok(()) } else { Err(Failure::Other(broken.join("; "))) }
}

/// Loads one skill, listed or not, verifies its files, and prints its instructions.
pub(crate) async fn show_one(
    client: &Client,
    server: &str,
    uri: &str,
    is_json: bool,
) -> Result<(), Failure> {
    let skills = SkillClient::new(server, client.clone());
    let skill = skills.get(uri).await?;
    let loaded = skills.load(&skill).await?;
    let problems = verify_files(&loaded, &skill).await?;
    if is_json {
        let label = skill.name().into();
        show(&Inspected { label, skill, problems: problems.clone() }.json().to_string());
    } else {
        show(loaded.instructions().trim_end());
        for file in skill.entry().files() {
            say(&format!("{} {}  {}", file.digest, file.size, file.uri));
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(Failure::Other(problems.join("; "))) }
}

/// Reads all files of a skill. Returns the problems; only a lost connection is an error.
async fn verify(skills: &SkillClient, skill: &OfferedSkill) -> Result<Vec<String>, Failure> {
    match skills.load(skill).await {
        Ok(loaded) => verify_files(&loaded, skill).await,
        Err(error) => Ok(vec![problem(error)?]),
    }
}

async fn verify_files(loaded: &LoadedSkill, skill: &OfferedSkill) -> Result<Vec<String>, Failure> {
    let mut problems = Vec::new();
    for file in skill.entry().files() {
        if let Err(error) = loaded.read(&file.uri).await {
            problems.push(problem(error)?);
        }
    }
    Ok(problems)
}

fn problem(error: SkillError) -> Result<String, Failure> {
    match Failure::from(error) {
        Failure::Other(problem) => Ok(problem),
        failure => Err(failure),
    }
}

impl Inspected {
    fn text(&self) -> String {
        let entry = self.skill.entry();
        let files = if entry.is_dynamic() {
            "generated, cannot be verified".into()
        } else if self.problems.is_empty() {
            format!("{} files, {} bytes, verified", entry.files().len(), entry.total_size())
        } else {
            self.problems.join("; ")
        };
        format!("{}  {}\n  {}  {files}", self.label, self.skill.description(), self.skill.uri())
    }

    fn json(&self) -> Value {
        json!({
            "label": self.label,
            "skill": self.skill.entry(),
            "verified": self.problems.is_empty() && !self.skill.entry().is_dynamic(),
            "problems": self.problems,
        })
    }
}

impl From<SkillError> for Failure {
    fn from(error: SkillError) -> Self {
        match error {
            SkillError::Call(error) => (*error).into(),
            error => Self::Other(error.to_string()),
        }
    }
}
