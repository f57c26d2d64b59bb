//! A server with skills of every kind, and clients of it.

use mcp_sansio::jsonrpc::{ErrorObject, Json, RawJson};
use mcp_sansio::{ErrorCode, Revision, Revisions};
use mcp_sansio_extensions::skills::{
    self, Frontmatter, GeneratedSkill, ServedSkills, SkillClient, SkillSet, SkillSetBuilder,
};
use mcp_sansio_handlers::{Client, ClientError, Host, Server};
use mcp_sansio_test::StreamPair;
use serde_json::Value;

pub(crate) const REFUNDS: &str = "skill://acme/billing/refunds/SKILL.md";
pub(crate) const ESCALATION: &str = "skill://acme/billing/refunds/escalation/SKILL.md";
pub(crate) const SUPPORT: &str = "skill://acme/support/refunds/SKILL.md";
pub(crate) const HIDDEN: &str = "skill://hidden/SKILL.md";
pub(crate) const DAILY: &str = "skill://reports/daily/SKILL.md";
pub(crate) const LOGO: &[u8] = b"\x89PNG\r\n\x1a\n\xff";

pub(crate) const REFUNDS_FILE: &str = "\
---
name: refunds
description: Refunds an order
license: MIT
metadata:
  version: '2'
---
Write [an email](examples/email.md).\r
";

/// Generates its content.
pub(crate) struct Daily;

impl GeneratedSkill for Daily {
    fn read(&self, path: &str) -> Option<Vec<u8>> {
        let text = match path {
            "SKILL.md" => {
                "---\nname: daily\ndescription: Today's report\n---\nSee `data/day 7.csv`.\n"
            }
            "data/day 7.csv" => "a,b\n",
            _ => return None,
        };
        Some(text.into())
    }

    fn paths(&self) -> Vec<String> {
        vec!["data/day 7.csv".into()]
    }
}

pub(crate) fn skill(name: &str) -> String {
    format!("---\nname: {name}\ndescription: About {name}\n---\n")
}

pub(crate) fn builder() -> SkillSetBuilder {
    SkillSet::builder()
        .file("acme/billing/refunds/SKILL.md", REFUNDS_FILE)
        .file("acme/billing/refunds/examples/email.md", "Dear customer,\r\n")
        .file("acme/billing/refunds/templates/invoice.md", "Invoice\n")
        .file("acme/billing/refunds/templates/regional/eu.md", "Rechnung\n")
        .file("acme/billing/refunds/logo.png", LOGO)
        .file("acme/billing/refunds/escalation/SKILL.md", skill("escalation"))
        .file("acme/billing/refunds/escalation/steps.md", "Ask a person.\n")
        .directory("acme/billing/refunds/empty")
        .file("acme/support/refunds/SKILL.md", skill("refunds"))
        .file("hidden/SKILL.md", skill("hidden"))
        .unlisted("hidden/SKILL.md")
        .generated("reports/daily", Frontmatter::from_name("daily", "Today's report"), Daily)
}

pub(crate) fn served() -> ServedSkills {
    ServedSkills::new(builder().build().expect("the skills are valid"))
}

pub(crate) fn server() -> Server {
    served().register(Server::new("shop", "1.0.0"))
}

/// Connects a client at one revision.
pub(crate) fn connect_at(server: &Server, revision: Revision) -> (Client, StreamPair) {
    let host = Host::new("demo", "1.0.0").revisions(Revisions::only(revision));
    mcp_sansio_test::connect(server, &skills::declare(host))
}

pub(crate) fn connect(server: &Server) -> (SkillClient, StreamPair) {
    let (client, pair) = connect_at(server, Revision::LATEST);
    (SkillClient::new("shop", client), pair)
}

/// Calls a method and returns the result as a tree.
pub(crate) async fn call(
    client: &Client,
    method: &str,
    params: Value,
) -> Result<Value, ClientError> {
    let params = Json::from_serialize(&params)?;
    let result = client.call_other(method, RawJson::from(params)).await?;
    Ok(result.decode()?)
}

/// Returns the error that a server answered with.
#[track_caller]
pub(crate) fn refusal<T: core::fmt::Debug>(result: Result<T, ClientError>) -> ErrorObject<'static> {
    let error = result.expect_err("the call is refused");
    error.as_refusal().unwrap_or_else(|| panic!("not refused: {error:?}")).clone()
}

pub(crate) const INVALID: ErrorCode = ErrorCode::INVALID_PARAMS;
