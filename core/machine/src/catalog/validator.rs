//! Validation of values against the schemas of tools.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Debug;

use super::Catalog;
use super::error::CatalogError;
use super::item::{ItemId, Schemas, ToolItem};
use super::list::Stored;
use crate::jsonrpc::{ErrorObject, Json, RawJson};
use crate::protocol::{Revision, Tool, ToolOutput};
use mcp_sansio_sync::Arc;

/// Compiles JSON Schemas: an adapter for a schema library, set on a [`Catalog`].
pub trait Validator: Debug + Send + Sync {
    /// Compiles a schema, which is a JSON object. Called once for each schema, when a tool is
    /// added.
    ///
    /// A schema without `$schema` uses the dialect 2020-12. Nothing is fetched: a `$ref` to another
    /// document is an error.
    ///
    /// # Errors
    ///
    /// The schema is invalid in its dialect, the dialect is not supported, or a `$ref` cannot be
    /// resolved. The text states which, and becomes part of [`CatalogError::InvalidSchema`].
    // MCP 2026-07-28 basic/index#implementation-requirements [JSCH-001] [JSCH-003]
    // MCP 2026-07-28 basic/index#schema-validation [JSCH-004]
    // MCP 2026-07-28 basic/index#ref-resolution [JSCH-005] [JSCH-007]
    fn compile(&self, schema: &Json) -> Result<Box<dyn CompiledSchema>, String>;

    /// Returns a copy: `Box::new(self.clone())`.
    fn clone_boxed(&self) -> Box<dyn Validator>;
}

/// A schema that a [`Validator`] has compiled.
pub trait CompiledSchema: Debug + Send + Sync {
    /// Validates a value from a peer; the work must be bounded.
    ///
    /// # Errors
    ///
    /// The value is invalid. The text tells a model how to correct it.
    // MCP 2026-07-28 basic/index#composition-keyword-resource-use [JSCH-008]
    fn validate(&self, value: &RawJson<'_>) -> Result<(), String>;

    /// Validates the arguments of a call of a tool with this input schema, `schema`. They are also
    /// valid if they are so without their `null` members, except arguments that the schema
    /// requires: a model that writes every member of a schema writes `null` for those that it
    /// leaves out.
    ///
    /// # Errors
    ///
    /// As [`validate`](Self::validate).
    // A provided method: a program without a validator does not contain it.
    fn validate_arguments(&self, arguments: &RawJson<'_>, schema: &Json) -> Result<(), String> {
        self.validate(arguments).or_else(|reason| {
            let present = without_null_members(arguments, schema);
            if present.is_some_and(|present| self.validate(&present).is_ok()) {
                Ok(())
            } else {
                Err(reason)
            }
        })
    }

    /// Returns a copy: `Box::new(self.clone())`.
    fn clone_boxed(&self) -> Box<dyn CompiledSchema>;
}

/// A tool with an output schema, as it was at the time of the call.
#[derive(Clone, Debug)]
pub(crate) struct DescribedTool(Arc<Stored<ToolItem>>);

impl DescribedTool {
    /// Checks a result. The error describes how it is invalid.
    // MCP 2026-07-28 server/tools#output-schema [TOOL-019]
    pub(crate) fn check(&self, output: ToolOutput<'_>) -> Result<(), String> {
        let ToolItem { tool, schemas } = &**self.0;
        let name = &tool.name;
        match output {
            ToolOutput::Unknown | ToolOutput::Failed => Ok(()),
            ToolOutput::Unstructured => {
                Err(format!("The tool {name} returned no structured result for its output schema"))
            }
            ToolOutput::Structured(structured) => match &schemas.output {
                Some(schema) => schema.validate(&structured.as_raw()).map_err(|reason| {
                    format!("The structured result of {name} does not match its schema: {reason}")
                }),
                None => Ok(()),
            },
        }
    }
}

/// Checks a tool's arguments against its schema at the time of
/// [`Catalog::argument_check`].
#[derive(Clone, Debug)]
pub struct ArgumentCheck(Arc<Stored<ToolItem>>);

impl ArgumentCheck {
    /// Checks arguments: see [`Catalog::validate_arguments`].
    ///
    /// # Errors
    ///
    /// The arguments do not match the schema. See [`Invalid`] for how to answer.
    pub fn check(&self, arguments: &RawJson<'_>, revision: Revision) -> Result<(), Invalid> {
        self.0.validate_arguments(arguments, revision)
    }
}

impl ToolItem {
    // MCP 2026-07-28 server/tools#security-considerations [TOOL-030]
    fn validate_arguments(
        &self,
        arguments: &RawJson<'_>,
        revision: Revision,
    ) -> Result<(), Invalid> {
        let Some(schema) = &self.schemas.input else { return Ok(()) };
        let Err(reason) = schema.validate_arguments(arguments, &self.tool.input_schema) else {
            return Ok(());
        };
        let text = format!(
            "The arguments do not match the schema of the tool {}: {reason}",
            self.tool.name
        );
        Err(if revision < Revision::V2025_11_25 {
            // MCP 2025-06-18 server/tools#error-handling [TOOL-009]: a protocol error.
            Invalid::Protocol(ErrorObject::invalid_params(text))
        } else {
            // MCP 2025-11-25 server/tools#error-handling [TOOL-010]: a tool error.
            Invalid::Tool(text)
        })
    }
}

/// Returns a copy of `arguments` without the members that are `null`, at every depth, if there are any.
/// Arguments that the schema requires are kept: there, `null` is a value.
fn without_null_members(arguments: &RawJson<'_>, schema: &Json) -> Option<RawJson<'static>> {
    let schema = schema.as_raw();
    let required = schema.get("required");
    let required: Vec<Cow<'_, str>> =
        required.as_ref().and_then(|names| names.decode().ok()).unwrap_or_default();
    arguments.without_null_members(&required, usize::MAX)
}

/// The arguments of a call do not match the schema of the tool. The revision determines how this is
/// reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// The request is answered with this error.
    Protocol(ErrorObject<'static>),
    /// The call returns a result with `isError` and this text, so that the model can correct it.
    Tool(String),
}

impl Catalog {
    /// Sets the validator for arguments and structured results, and compiles the schemas of all
    /// tools with it. Without a validator, nothing is validated here, and handlers get any value
    /// that their types accept.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError::InvalidSchema`] if the validator refuses a schema of an existing
    /// tool. The catalog then keeps its previous validator.
    pub fn validator(&mut self, validator: impl Validator + 'static) -> Result<(), CatalogError> {
        let compiled: Result<Vec<_>, _> =
            self.tools().map(|tool| compile(&validator, tool)).collect();
        for (item, schemas) in self.tools.iter_mut().zip(compiled?) {
            item.schemas = schemas;
        }
        self.validator = Some(Box::new(validator));
        Ok(())
    }

    /// Returns whether the catalog has a validator.
    pub(crate) const fn validates(&self) -> bool {
        self.validator.is_some()
    }

    /// Checks the arguments of a call against the `inputSchema` of the tool; a missing `arguments`
    /// is [`RawJson::EMPTY_OBJECT`]. Succeeds if there is no validator or no such tool.
    ///
    /// `null` in an optional member is absence: arguments are also valid if they match the schema
    /// without their members that are `null`. The handler gets them as they were sent.
    ///
    /// # Errors
    ///
    /// The arguments do not match the schema. See [`Invalid`] for how to answer.
    pub fn validate_arguments(
        &self,
        tool: ItemId,
        arguments: &RawJson<'_>,
        revision: Revision,
    ) -> Result<(), Invalid> {
        self.tools.by_id(tool).map_or(Ok(()), |item| item.validate_arguments(arguments, revision))
    }

    /// Returns the check of a tool's arguments, for a layer that changes them when the catalog
    /// cannot be reached; `None` if there is no such tool or it has no compiled schema.
    #[must_use]
    pub fn argument_check(&self, tool: ItemId) -> Option<ArgumentCheck> {
        let item = self.tools.by_id(tool)?;
        item.schemas.input.is_some().then(|| ArgumentCheck(Arc::clone(item)))
    }

    /// Checks the result of a tool against its `outputSchema`. Since 2025-06-18, a tool with a
    /// schema must return structured content or an error, and with a validator the content must
    /// match. Succeeds if there is no such tool or it has no schema.
    ///
    /// # Errors
    ///
    /// The result does not match the schema. The text states why.
    pub fn validate_output(
        &self,
        tool: ItemId,
        output: ToolOutput<'_>,
        revision: Revision,
    ) -> Result<(), String> {
        self.described_tool(tool, revision).map_or(Ok(()), |tool| tool.check(output))
    }

    /// Returns the tool, if its results have a schema at `revision`.
    pub(crate) fn described_tool(&self, tool: ItemId, revision: Revision) -> Option<DescribedTool> {
        let item = self.tools.by_id(tool)?;
        let described = item.tool.output_schema.is_some() && revision >= Revision::V2025_06_18;
        described.then(|| DescribedTool(Arc::clone(item)))
    }

    pub(super) fn compile(&self, tool: &Tool) -> Result<Schemas, CatalogError> {
        match &self.validator {
            Some(validator) => compile(&**validator, tool),
            None => Ok(Schemas::default()),
        }
    }
}

fn compile(validator: &dyn Validator, tool: &Tool) -> Result<Schemas, CatalogError> {
    let one = |member, schema: &Json| {
        validator.compile(schema).map_err(|reason| CatalogError::InvalidSchema {
            tool: tool.name.clone(),
            member,
            reason: format!("is refused: {reason}"),
        })
    };
    Ok(Schemas {
        input: Some(one("inputSchema", &tool.input_schema)?),
        output: match &tool.output_schema {
            Some(schema) => Some(one("outputSchema", schema)?),
            None => None,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jsonrpc::ErrorCode;

    /// A validator with one keyword: `required`, with one name.
    #[derive(Clone, Debug)]
    struct Required;

    #[derive(Clone, Debug)]
    struct Names(Option<String>);

    impl Validator for Required {
        fn compile(&self, schema: &Json) -> Result<Box<dyn CompiledSchema>, String> {
            if schema.as_raw().get("$ref").is_some() {
                return Err("a `$ref` leads out of the schema".into());
            }
            let required =
                schema.as_raw().get("required").map(|names| names.decode::<[String; 1]>());
            let [name] = match required {
                Some(Ok(names)) => names.map(Some),
                Some(Err(error)) => return Err(format!("{error}")),
                None => [None],
            };
            Ok(Box::new(Names(name)))
        }

        fn clone_boxed(&self) -> Box<dyn Validator> {
            Box::new(self.clone())
        }
    }

    impl CompiledSchema for Names {
        fn validate(&self, value: &RawJson<'_>) -> Result<(), String> {
            match &self.0 {
                Some(name) if value.get(name).is_none() => Err(format!("`{name}` is missing")),
                _ => Ok(()),
            }
        }

        fn clone_boxed(&self) -> Box<dyn CompiledSchema> {
            Box::new(self.clone())
        }
    }

    fn json(text: &str) -> Json {
        RawJson::parse(text).unwrap().into()
    }

    fn tool() -> Tool {
        Tool::new("t", json(r#"{"type":"object","required":["a"]}"#))
            .output_schema(json(r#"{"type":"object","required":["b"]}"#))
    }

    #[test]
    fn invalid_arguments_are_a_protocol_error_and_a_tool_error_since_2025_11_25() {
        // Rule: [TOOL-009] [TOOL-010].
        let mut catalog = Catalog::new();
        let t = catalog.add_tool(tool()).unwrap();
        let bad = RawJson::EMPTY_OBJECT;
        assert_eq!(catalog.validate_arguments(t, &bad, Revision::LATEST), Ok(()));
        catalog.validator(Required).unwrap();
        // A copy validates as the original does.
        let catalog = catalog.clone();
        for revision in Revision::ALL {
            let good = json(r#"{"a":1}"#);
            assert_eq!(catalog.validate_arguments(t, &good.as_raw(), revision), Ok(()));
            let text = "The arguments do not match the schema of the tool t: `a` is missing";
            match catalog.validate_arguments(t, &bad, revision).unwrap_err() {
                Invalid::Protocol(error) => {
                    assert!(revision < Revision::V2025_11_25);
                    assert_eq!((error.code, &*error.message), (ErrorCode::INVALID_PARAMS, text));
                }
                Invalid::Tool(found) => {
                    assert!(revision >= Revision::V2025_11_25);
                    assert_eq!(found, text);
                }
            }
        }
    }

    /// A validator that accepts one text.
    #[derive(Clone, Debug)]
    struct Exactly(&'static str);

    impl Validator for Exactly {
        fn compile(&self, _: &Json) -> Result<Box<dyn CompiledSchema>, String> {
            Ok(Box::new(self.clone()))
        }

        fn clone_boxed(&self) -> Box<dyn Validator> {
            Box::new(self.clone())
        }
    }

    impl CompiledSchema for Exactly {
        fn validate(&self, value: &RawJson<'_>) -> Result<(), String> {
            if value.as_str() == self.0 { Ok(()) } else { Err(value.as_str().into()) }
        }

        fn clone_boxed(&self) -> Box<dyn CompiledSchema> {
            Box::new(self.clone())
        }
    }

    #[test]
    fn null_in_an_optional_argument_is_absence() {
        for (sent, read) in [
            (r#"{"x":null,"y":1}"#, r#"{"y":1}"#),
            (r#"{"x":null}"#, "{}"),
            (r#"{"y":1,"x":null,"w":null,"z":2}"#, r#"{"y":1,"z":2}"#),
            (r#"{"x":null,"w":null}"#, "{}"),
            (r#"{"y":"a:","x":null , "w":null}"#, r#"{"y":"a:"}"#),
            (r#"{"y":{"x": null, "z":[ {"x":null} ]}}"#, r#"{"y":{"z":[{}]}}"#),
            // An element of a list, and text.
            (r#"{"y":[null, 1],"z":"null","x":null}"#, r#"{"y":[null,1],"z":"null"}"#),
            // The schema requires `a`, and says whether it may be `null`.
            (r#"{"\u0061":null,"x":null}"#, r#"{"\u0061":null}"#),
            (r#"{"x":null,"a\"":1}"#, r#"{"a\"":1}"#),
        ] {
            let mut catalog = Catalog::new();
            let t = catalog.add_tool(tool()).unwrap();
            let sent = json(sent);
            let check =
                |catalog: &Catalog| catalog.validate_arguments(t, &sent.as_raw(), Revision::LATEST);
            catalog.validator(Exactly(read)).unwrap();
            assert_eq!(check(&catalog), Ok(()), "{read}");
            catalog.validator(Exactly("null")).unwrap();
            // The reason refers to what was sent.
            let Err(Invalid::Tool(reason)) = check(&catalog) else { panic!("{read} is accepted") };
            assert!(reason.ends_with(sent.as_str()), "{reason}");
        }
    }

    #[test]
    fn null_members_are_left_out_at_any_depth_without_recursion() {
        let nested =
            |end: &str| ["[{\"a\":".repeat(200_000).as_str(), end, &"}]".repeat(200_000)].concat();
        let sent = nested(r#"{"\\":null,"b":[null],"c":null}"#);
        let copy = RawJson::trusted(&sent).without_null_members(&[], usize::MAX);
        assert!(copy.is_some_and(|copy| copy.as_str() == nested(r#"{"b":[null]}"#)));
        assert_eq!(RawJson::trusted(&sent).without_null_members(&[], 400_000), None);
    }

    #[test]
    fn structured_results_conform_to_the_output_schema() {
        // Rule: [TOOL-019].
        let mut catalog = Catalog::new();
        catalog.validator(Required).unwrap();
        let t = catalog.add_tool(tool()).unwrap();
        let (good, bad) = (json(r#"{"b":1}"#), Json::from(RawJson::NULL));
        let check =
            |catalog: &Catalog, output| catalog.validate_output(t, output, Revision::V2025_06_18);
        assert_eq!(check(&catalog, ToolOutput::Structured(&good)), Ok(()));
        let refused = check(&catalog, ToolOutput::Structured(&bad)).unwrap_err();
        assert!(refused.contains("`b` is missing"), "{refused}");
        let refused = check(&catalog, ToolOutput::Unstructured).unwrap_err();
        assert!(refused.contains("no structured result"), "{refused}");
        for output in [ToolOutput::Failed, ToolOutput::Unknown] {
            assert_eq!(check(&catalog, output), Ok(()));
        }
        let bad = ToolOutput::Structured(&bad);
        assert_eq!(catalog.validate_output(t, bad, Revision::V2025_03_26), Ok(()));
        catalog.remove_tool("t");
        assert_eq!(check(&catalog, bad), Ok(()));
    }

    #[test]
    fn a_tool_with_a_refused_schema_is_not_added() {
        // Rule: [JSCH-003] [JSCH-005] [JSCH-007].
        let mut catalog = Catalog::new();
        let outside = Tool::new("t", json(r#"{"type":"object","$ref":"https://example.com/s"}"#));
        catalog.add_tool(outside.clone()).unwrap();
        let late = catalog.validator(Required).unwrap_err();
        assert!(matches!(late, CatalogError::InvalidSchema { member: "inputSchema", .. }));
        catalog.remove_tool("t");
        catalog.validator(Required).unwrap();
        let refused = catalog.add_tool(outside).unwrap_err();
        let text = alloc::string::ToString::to_string(&refused);
        assert_eq!(
            text,
            "tool \"t\": its inputSchema is refused: a `$ref` leads out of the schema"
        );
        assert_eq!(catalog.tools().len(), 0);
    }
}
