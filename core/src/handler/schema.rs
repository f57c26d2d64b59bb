use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;

use crate::jsonrpc::Json;

/// The JSON Schema of `T`.
pub(super) fn of<T: schemars::JsonSchema>() -> Json {
    let schema = schemars::SchemaGenerator::default().into_root_schema_for::<T>();
    Json::from_serialize(&schema).expect("a schema is JSON")
}

/// The JSON Schema of a form with the fields of `T`: no references, and a field that may be left
/// empty is one that is not required, not one that may be `null`.
pub(super) fn of_form<T: schemars::JsonSchema>() -> Json {
    let settings = SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .with_transform(RecursiveTransform(without_null));
    let schema = settings.into_generator().into_root_schema_for::<T>();
    Json::from_serialize(&schema).expect("a schema is JSON")
}

fn without_null(schema: &mut schemars::Schema) {
    let Some(members) = schema.as_object_mut() else { return };
    if members.get("default").is_some_and(serde_json::Value::is_null) {
        members.remove("default");
    }
    if let Some(values) = members.get_mut("enum").and_then(|values| values.as_array_mut()) {
        values.retain(|value| !value.is_null());
    }
    if let Some(kind) = members.get_mut("type")
        && let Some(kinds) = kind.as_array_mut()
    {
        kinds.retain(|kind| kind != "null");
        if let [only] = &mut kinds[..] {
            *kind = only.take();
        }
    }
    if let Some(kinds) = members.get_mut("anyOf").and_then(|kinds| kinds.as_array_mut()) {
        kinds.retain(|kind| kind.get("type").is_none_or(|kind| kind != "null"));
        if let [only] = &mut kinds[..]
            && let serde_json::Value::Object(only) = only.take()
        {
            members.remove("anyOf");
            for (key, value) in only {
                members.entry(key).or_insert(value);
            }
        }
    }
}
