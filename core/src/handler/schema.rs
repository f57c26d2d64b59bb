use crate::jsonrpc::Json;

/// The JSON Schema of `T`.
pub(super) fn of<T: schemars::JsonSchema>() -> Json {
    let schema = schemars::SchemaGenerator::default().into_root_schema_for::<T>();
    Json::from_serialize(&schema).expect("a schema is JSON")
}
