use schemars::generate::SchemaSettings;
use schemars::transform::AddNullable;

use crate::jsonrpc::Json;

/// The JSON Schema of `T`.
pub(super) fn of<T: schemars::JsonSchema>() -> Json {
    let schema = schemars::SchemaGenerator::default().into_root_schema_for::<T>();
    Json::from_serialize(&schema).expect("a schema is JSON")
}

/// The JSON Schema of a form with the fields of `T`: no references, and a field that may be left
/// empty is one that is not required.
pub(super) fn of_form<T: schemars::JsonSchema>() -> Json {
    let settings = SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .with_transform(AddNullable::default());
    let schema = settings.into_generator().into_root_schema_for::<T>();
    Json::from_serialize(&schema).expect("a schema is JSON")
}
