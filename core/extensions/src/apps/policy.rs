//! The content security policy of a page.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// The domains that a page uses, as origins: `https://api.example.com`, `https://*.example.com`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ContentDomains {
    /// For requests of scripts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connect_domains: Vec<String>,
    /// For scripts, styles, images, fonts and media.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_domains: Vec<String>,
    /// For frames in the page.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frame_domains: Vec<String>,
    /// For the base URI of the document.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub base_uri_domains: Vec<String>,
}

macro_rules! setters {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => { $(
        $(#[doc = $doc])*
        #[must_use]
        pub fn $name(mut self, origins: impl IntoIterator<Item = impl Into<String>>) -> Self {
            self.$name = origins.into_iter().map(Into::into).collect();
            self
        }
    )* };
}

impl ContentDomains {
    /// Creates an empty list: the page uses no domain.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        /// Sets the domains for requests of scripts.
        connect_domains,
        /// Sets the domains for scripts, styles, images, fonts and media.
        resource_domains,
        /// Sets the domains for frames in the page.
        frame_domains,
        /// Sets the domains for the base URI of the document.
        base_uri_domains,
    }

    /// Returns the entries that are not single origins. They are not in the policy.
    pub fn invalid(&self) -> impl Iterator<Item = &str> {
        let all = [
            &self.connect_domains,
            &self.resource_domains,
            &self.frame_domains,
            &self.base_uri_domains,
        ];
        all.into_iter().flatten().map(String::as_str).filter(|entry| !is_origin(entry))
    }
}

/// Returns the value of `Content-Security-Policy` for a page that uses `domains`.
// MCP 2026-07-28 apps:apps#host-behavior [APPS-027] [APPS-029]: the declared domains and no others.
pub(super) fn policy(domains: Option<&ContentDomains>) -> String {
    let mut policy = String::from("default-src 'none'");
    let none = ContentDomains::new();
    let all = domains.unwrap_or(&none);
    let mut directive = |name: &str, fixed: &str, origins: &[String]| {
        policy.push_str("; ");
        policy.push_str(name);
        policy.push_str(fixed);
        // MCP 2026-07-28 apps:apps#4-content-security-policy-enforcement [APPS-033]: another entry
        // could add a directive.
        for origin in origins.iter().filter(|origin| is_origin(origin)) {
            policy.push(' ');
            policy.push_str(origin);
        }
    };
    // MCP 2026-07-28 apps:apps#host-behavior [APPS-028]
    directive("script-src", " 'self' 'unsafe-inline'", &all.resource_domains);
    directive("style-src", " 'self' 'unsafe-inline'", &all.resource_domains);
    directive("img-src", " 'self' data:", &all.resource_domains);
    directive("media-src", " 'self' data:", &all.resource_domains);
    if domains.is_some() {
        directive("font-src", " 'self'", &all.resource_domains);
    }
    let or_none = |origins: &[String], fixed| {
        if origins.iter().any(|origin| is_origin(origin)) { "" } else { fixed }
    };
    directive("connect-src", or_none(&all.connect_domains, " 'none'"), &all.connect_domains);
    // MCP 2026-07-28 apps:apps#sandbox-proxy [APPS-031]
    directive("frame-src", or_none(&all.frame_domains, " 'none'"), &all.frame_domains);
    directive("object-src", " 'none'", &[]);
    directive("base-uri", or_none(&all.base_uri_domains, " 'self'"), &all.base_uri_domains);
    policy
}

/// Returns whether an entry is one origin: a scheme and a host, perhaps with a wildcard for the
/// first label and a port.
fn is_origin(entry: &str) -> bool {
    let Some((scheme, rest)) = entry.split_once("://") else { return false };
    if !["http", "https", "ws", "wss"].contains(&scheme) {
        return false;
    }
    let (host, port) = rest.split_once(':').unwrap_or((rest, "0"));
    let is_port = !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) && port.len() <= 5;
    let host = host.strip_prefix("*.").unwrap_or(host);
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    is_port && host.split('.').all(is_label)
}
