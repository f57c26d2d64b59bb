use alloc::collections::BTreeMap;
use alloc::vec;

use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::*;

fn same_as_serde_json<T: Serialize>(value: T) {
    let mut out = String::from("before");
    serialize(&mut out, &value).expect("serializes");
    let expected = serde_json::to_string(&value).expect("serializes");
    assert_eq!(out, ["before", &expected].concat());
}

#[derive(Serialize)]
enum Shape {
    Unit,
    Newtype(u8),
    Tuple(u8, i128),
    Struct { a: Option<char>, b: () },
}

#[derive(Serialize)]
struct Unit;

#[derive(Serialize)]
struct Newtype(&'static str);

#[derive(Serialize, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    A,
    #[serde(rename = "b\"")]
    B,
}

#[test]
fn every_kind_of_value_is_written_as_serde_json_writes_it() {
    same_as_serde_json((1_u8, -2_i64, u64::MAX, i64::MIN, u128::MAX, true, false, 'é', '"'));
    same_as_serde_json("a\"\\/\u{8}\u{c}\n\r\t\u{0}\u{1f}\u{7f}é😀");
    same_as_serde_json([Shape::Unit, Shape::Newtype(1), Shape::Tuple(1, -5)]);
    same_as_serde_json(Shape::Struct { a: None, b: () });
    same_as_serde_json(Shape::Struct { a: Some('x'), b: () });
    same_as_serde_json((Unit, Newtype("n"), (), [0_u8; 0], Some(Some(1))));
    same_as_serde_json(json!({"a": [1, 2.5, null, {"b": {}}], "": [], "c": -1.5}));
    same_as_serde_json(BTreeMap::from([(1_i8, 'a'), (-1, 'b')]));
    same_as_serde_json(BTreeMap::from([(true, 'a'), (false, 'b')]));
    same_as_serde_json(BTreeMap::from([('"', 1)]));
    same_as_serde_json(BTreeMap::from([(Key::A, 1), (Key::B, 2)]));
    same_as_serde_json(BTreeMap::<u8, u8>::new());
}

#[test]
fn numbers_with_a_fraction_read_back_as_the_same_number() {
    for number in [0.0, -0.0, 1.0, 0.1, 1e16, 1e-7, 123_456.75, f64::MAX, f64::MIN_POSITIVE, 5e-324]
    {
        let mut out = String::new();
        serialize(&mut out, &number).expect("serializes");
        let back: f64 = serde_json::from_str(&out).expect("a JSON number");
        assert_eq!(back.to_bits(), number.to_bits());
    }
    same_as_serde_json([f64::NAN, f64::INFINITY, 0.5, -2.0, 1e300, 1e-300]);
    same_as_serde_json([f32::NAN, f32::INFINITY, 0.1, 16_777_216.0, 1e16, 1e-7, f32::MAX]);
}

#[test]
fn raw_text_passes_through_unchanged() {
    let raw = RawValue::from_string(" {\"a\" :\"\\n\"} ".into()).expect("JSON");
    same_as_serde_json(vec![("x", raw)]);
}

#[test]
fn keys_that_are_not_strings_are_refused() {
    let mut out = String::new();
    assert!(serialize(&mut out, &BTreeMap::from([((1, 2), 3)])).is_err());
    assert!(serialize(&mut out, &BTreeMap::from([(None::<u8>, 3)])).is_err());
    assert!(serialize(&mut out, &BTreeMap::from([([1], 3)])).is_err());
}
