//! The member `ui` in the metadata of tools and pages.

use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::protocol::{Meta, Resource, TextResourceContents, Tool};
use mcp_sansio_handlers::ServerItem;
use mcp_sansio_handlers::handler::Threading;
use serde::{Deserialize, Serialize};

pub(super) const KEY: &str = "ui";

/// `_meta.ui` of a tool.
// MCP 2026-07-28 apps:apps#resource-discovery [APPS-016]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolUi {
    /// The URI of the page that shows the results of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_uri: Option<String>,
    /// The callers of the tool; `None` for the model and pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visibility: Option<Vec<Visibility>>,
}

/// A caller of tools.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Visibility {
    /// The model.
    Model,
    /// Pages of the same server.
    App,
    /// Another caller, from a later version of the extension.
    #[serde(other)]
    Unknown,
}

impl ToolUi {
    /// Creates the metadata of a tool without a page, which the model and pages may call.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the page that shows the results of the tool.
    #[must_use]
    pub fn page(mut self, uri: impl Into<String>) -> Self {
        self.resource_uri = Some(uri.into());
        self
    }

    /// Sets who may call the tool.
    #[must_use]
    pub fn visibility(mut self, visibility: impl Into<Vec<Visibility>>) -> Self {
        self.visibility = Some(visibility.into());
        self
    }

    /// Returns whether `caller` may call the tool.
    #[must_use]
    pub fn is_visible_to(&self, caller: &Visibility) -> bool {
        self.visibility.as_ref().is_none_or(|callers| callers.contains(caller))
    }
}

/// `_meta.ui` of a page: its needs, and its preferred display.
// MCP 2026-07-28 apps:apps#ui-resource-format [APPS-026]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PageUi {
    /// The domains that the page uses; `None` for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csp: Option<ContentDomains>,
    /// The permissions that the page asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Permissions>,
    /// A dedicated origin for the page, in a form that the host defines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// Whether the page wants a visible border; `None` leaves that to the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefers_border: Option<bool>,
}

impl PageUi {
    /// Creates the metadata of a page that needs nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the domains that the page uses.
    #[must_use]
    pub fn csp(mut self, domains: ContentDomains) -> Self {
        self.csp = Some(domains);
        self
    }

    /// Sets the permissions that the page asks for.
    #[must_use]
    pub const fn permissions(mut self, permissions: Permissions) -> Self {
        self.permissions = Some(permissions);
        self
    }

    /// Sets a dedicated origin for the page.
    #[must_use]
    pub fn domain(mut self, domain: impl Into<String>) -> Self {
        self.domain = Some(domain.into());
        self
    }

    /// Sets whether the page wants a visible border.
    #[must_use]
    pub const fn prefers_border(mut self, prefers: bool) -> Self {
        self.prefers_border = Some(prefers);
        self
    }
}

/// The permissions that a page asks for. A host may refuse them.
// MCP 2026-07-28 apps:apps#ui-resource-format [APPS-026] [APPS-032]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Permissions {
    /// The camera.
    #[serde(default, with = "granted", skip_serializing_if = "is_false")]
    pub camera: bool,
    /// The microphone.
    #[serde(default, with = "granted", skip_serializing_if = "is_false")]
    pub microphone: bool,
    /// The location.
    #[serde(default, with = "granted", skip_serializing_if = "is_false")]
    pub geolocation: bool,
    /// Writing to the clipboard.
    #[serde(default, with = "granted", skip_serializing_if = "is_false")]
    pub clipboard_write: bool,
}

impl Permissions {
    /// Returns the value for the attribute `allow` of an `iframe` that grants them.
    #[must_use]
    pub fn allow_attribute(&self) -> String {
        let features = [
            (self.camera, "camera"),
            (self.microphone, "microphone"),
            (self.geolocation, "geolocation"),
            (self.clipboard_write, "clipboard-write"),
        ];
        let granted: Vec<&str> =
            features.into_iter().filter_map(|(is_asked, name)| is_asked.then_some(name)).collect();
        granted.join("; ")
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// A permission on the wire: an object if it is asked for.
mod granted {
    use serde::de::IgnoredAny;
    use serde::ser::SerializeMap as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
    pub(super) fn serialize<S: Serializer>(_: &bool, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_map(Some(0))?.end()
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
        Option::<IgnoredAny>::deserialize(from).map(|value| value.is_some())
    }
}

/// An item that can have `_meta.ui`.
pub trait WithUi: Sized {
    /// The type of the member.
    type Ui;

    /// Sets `_meta.ui`.
    #[must_use]
    fn ui(self, ui: &Self::Ui) -> Self;
}

impl WithUi for Tool {
    type Ui = ToolUi;

    fn ui(mut self, ui: &ToolUi) -> Self {
        // MCP 2026-07-28 apps:apps#resource-discovery [APPS-017]: not `ui/resourceUri`.
        set(&mut self.meta, ui);
        self
    }
}

impl<K: Threading> WithUi for ServerItem<Tool, K> {
    type Ui = ToolUi;

    fn ui(self, ui: &ToolUi) -> Self {
        self.define(|tool| tool.ui(ui))
    }
}

impl WithUi for Resource {
    type Ui = PageUi;

    fn ui(mut self, ui: &PageUi) -> Self {
        set(&mut self.meta, ui);
        self
    }
}

impl WithUi for TextResourceContents {
    type Ui = PageUi;

    fn ui(mut self, ui: &PageUi) -> Self {
        set(&mut self.meta, ui);
        self
    }
}

fn set<T: Serialize>(meta: &mut Option<Meta>, ui: &T) {
    let written = meta.get_or_insert_default().set(KEY, ui);
    debug_assert!(written.is_ok(), "strings, flags and lists are JSON");
}

/// Reads `_meta.ui`. Metadata of another form counts as absent.
pub(super) fn get<T: for<'de> Deserialize<'de>>(meta: Option<&Meta>) -> Option<T> {
    meta?.get(KEY).filter(|ui| *ui != RawJson::NULL)?.decode().ok()
}

// ------------------------------------------------------------------ the content security policy of a page

/// The domains that a page uses, as origins: `https://api.example.com`, `https://*.example.com`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ContentDomains {
    /// For requests of scripts.
    #[serde(default, deserialize_with = "or_none", skip_serializing_if = "Vec::is_empty")]
    pub connect_domains: Vec<String>,
    /// For scripts, styles, images, fonts and media.
    #[serde(default, deserialize_with = "or_none", skip_serializing_if = "Vec::is_empty")]
    pub resource_domains: Vec<String>,
    /// For frames in the page.
    #[serde(default, deserialize_with = "or_none", skip_serializing_if = "Vec::is_empty")]
    pub frame_domains: Vec<String>,
    /// For the base URI of the document.
    #[serde(default, deserialize_with = "or_none", skip_serializing_if = "Vec::is_empty")]
    pub base_uri_domains: Vec<String>,
}

/// Reads `null` as an empty list: some servers write members without a value so.
fn or_none<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
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
