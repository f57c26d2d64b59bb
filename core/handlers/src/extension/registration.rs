//! The parts that both sides of an extension have: the identifier, the settings, the requirements and the
//! rows of the methods.

use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio::jsonrpc::{Json, RawJson};
use mcp_sansio::protocol::{
    Capabilities, Capability, CapabilitySettings, ExtensionError, ExtensionRequirement, Method,
    Side, check_extension_id,
};
use serde::Serialize;

use super::method::MethodRow;

/// An extension that is registered with a server or a host.
// MCP 2026-07-28 extensions:SEP-3371-summary#general [EXT-018]
#[derive(Clone, Debug)]
pub struct RegisteredExtension {
    id: String,
    settings: Json,
    requirements: Vec<ExtensionRequirement>,
    pub(crate) methods: Vec<MethodRow>,
}

impl RegisteredExtension {
    // MCP 2026-07-28 basic/versioning#extension-negotiation [EXT-001]
    pub(crate) fn new(id: String) -> Result<Self, ExtensionError> {
        if let Err(reason) = check_extension_id(&id) {
            return Err(ExtensionError::InvalidId { id, reason });
        }
        let settings = RawJson::EMPTY_OBJECT.into();
        Ok(Self { id, settings, requirements: Vec::new(), methods: Vec::new() })
    }

    /// Returns the identifier.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the settings that this side declares, an object.
    #[must_use]
    pub const fn settings(&self) -> &Json {
        &self.settings
    }

    /// Returns what the extension requires of this side.
    #[must_use]
    pub fn requirements(&self) -> &[ExtensionRequirement] {
        &self.requirements
    }

    /// Returns the names of the methods that this side handles.
    pub fn methods(&self) -> impl ExactSizeIterator<Item = &'static str> {
        self.methods.iter().map(|row| row.name)
    }

    pub(crate) fn set_settings<S: Serialize + ?Sized>(
        &mut self,
        settings: &S,
    ) -> Result<(), ExtensionError> {
        match Json::from_serialize(settings) {
            Ok(settings) if settings.as_str().starts_with('{') => self.settings = settings,
            _ => return Err(ExtensionError::InvalidSettings { id: self.id.clone() }),
        }
        Ok(())
    }

    pub(crate) fn require(&mut self, capability: Capability) {
        self.requirements.push(ExtensionRequirement::Capability(capability));
    }

    pub(crate) fn require_extension(&mut self, id: String) {
        self.requirements.push(ExtensionRequirement::Extension(id));
    }

    /// Adds a method that `sender` sends and this side handles.
    // MCP 2026-07-28 extensions:SEP-3371-summary#2-custom-methods [EXT-026]
    pub(crate) fn add_method(
        &mut self,
        row: MethodRow,
        sender: Side,
    ) -> Result<(), ExtensionError> {
        let (id, method) = (self.id.clone(), row.name.into());
        if row.extension != self.id || row.sender() != sender {
            return Err(ExtensionError::ForeignMethod { id, method });
        }
        let is_taken = self.methods.iter().any(|known| known.name == row.name);
        if is_taken || Method::parse(row.name).is_some() {
            return Err(ExtensionError::MethodTaken { id, method });
        }
        self.methods.push(row);
        Ok(())
    }

    /// Checks that this extension fits to the ones that are registered, and declares it.
    // MCP 2026-07-28 extensions:SEP-3371-summary#1-registration [EXT-020] [EXT-021]
    pub(crate) fn declare(
        &self,
        registered: &[Self],
        is_taken: impl Fn(&str) -> bool,
        declared: &mut Option<CapabilitySettings>,
    ) -> Result<(), ExtensionError> {
        if declared.as_ref().is_some_and(|declared| declared.contains_key(&self.id)) {
            return Err(ExtensionError::Duplicate { id: self.id.clone() });
        }
        let mut others = registered.iter().flat_map(Self::methods);
        let taken = self.methods().find(|name| others.any(|it| it == *name) || is_taken(name));
        if let Some(method) = taken {
            let (id, method) = (self.id.clone(), method.into());
            return Err(ExtensionError::MethodTaken { id, method });
        }
        declared.get_or_insert_default().insert(self.id.as_str(), self.settings.clone());
        Ok(())
    }
}

/// Returns the first unmet requirement of extensions on a side with these capabilities and
/// extensions.
// MCP 2026-07-28 extensions:SEP-3371-summary#1-registration [EXT-022] [EXT-023] [EXT-024]: checked
// when everything is registered, and before a message is handled.
pub(crate) fn unmet(
    registered: &[RegisteredExtension],
    capabilities: Capabilities,
    declared: Option<&CapabilitySettings>,
) -> Option<ExtensionError> {
    let is_met = |requirement: &ExtensionRequirement| match requirement {
        ExtensionRequirement::Capability(capability) => capabilities.contains(*capability),
        ExtensionRequirement::Extension(id) => declared.is_some_and(|all| all.contains_key(id)),
        _ => false,
    };
    registered.iter().find_map(|extension| {
        let requirement = extension.requirements.iter().find(|it| !is_met(it))?.clone();
        Some(ExtensionError::Unmet { id: extension.id.clone(), requirement })
    })
}
