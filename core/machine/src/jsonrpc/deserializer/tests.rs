use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Debug;

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use super::*;

/// Deserializes the text with both implementations, which must agree on the value or both fail.
fn same_as_serde_json<T: DeserializeOwned + Debug + PartialEq>(text: &str) {
    let expected = serde_json::from_str::<T>(text);
    match (deserialize::<T>(text), expected) {
        (Ok(read), Ok(expected)) => assert_eq!(read, expected, "{text}"),
        (Ok(_), Err(_)) if LENIENT.contains(&text) => {}
        (Err(_), Err(_)) => {}
        (read, expected) => panic!("{text}: {read:?}, not {expected:?}"),
    }
}

/// Texts that `serde_json` refuses for some types: integers in the spelling of floats, and an empty
/// array for an empty object.
const LENIENT: &[&str] = &["-0", "-0.0", "[]", "[ ]"];

/// Texts of every kind, each deserialized as every tested type.
const TEXTS: &[&str] = &[
    "null",
    " true ",
    "false",
    "0",
    "-0",
    "-1",
    "255",
    "256",
    "-129",
    "65535",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "170141183460469231731687303715884105727",
    "-0.0",
    "1.5",
    "15e-1",
    "1E-2",
    "1e400",
    "33e55",
    r#""""#,
    r#""é""#,
    r#""a""#,
    r#""a\n\u00e9\ud83d\ude00\/""#,
    r#""\ud83d""#,
    r#""1""#,
    "[]",
    "[ ]",
    "[1]",
    "[1,2]",
    "[ 1 , 2 , 3 ]",
    r#"["a",1]"#,
    "[[1],[2,3],[]]",
    "{}",
    "{ }",
    r#"{"a":1}"#,
    r#"{"a":1,"b":"x"}"#,
    r#"{ "b" : "x" , "a" : 2 }"#,
    r#"{"a":1,"a":2}"#,
    r#"{"\u0061":3,"b":null,"other":[{"a":[1]}, "}"]}"#,
    r#"{"1":"x","2":"y"}"#,
    r#"{"-1":"x","01":"y"}"#,
    r#"{"+1":"x"}"#,
    r#"{"01":"x"}"#,
    r#"{"-0":"x"}"#,
    r#"{"1 ":"x"}"#,
    r#"{" 1":"x"}"#,
    r#"{"\u0031":"x"}"#,
    r#"{"\u0074rue":1}"#,
    r#"{"1.5":1}"#,
    r#"{"true":1,"false":2}"#,
    r#""Unit""#,
    r#"{"Unit":null}"#,
    r#"{"Newtype":7}"#,
    r#"{"Tuple":[1,"x"]}"#,
    r#"{"Struct":{"a":1,"b":"x"}}"#,
    r#"{"Struct":[1,"x"]}"#,
    r#"{"Newtype":7,"Unit":null}"#,
];

#[derive(Debug, PartialEq, serde::Deserialize)]
struct Fields {
    a: u8,
    b: Option<String>,
}

#[derive(Debug, PartialEq, serde::Deserialize)]
struct Unit;

#[derive(Debug, PartialEq, serde::Deserialize)]
struct Newtype(u16);

#[derive(Debug, PartialEq, serde::Deserialize)]
enum Shape {
    Unit,
    Newtype(u8),
    Tuple(u8, String),
    Struct { a: u8, b: String },
}

#[derive(Debug, PartialEq, serde::Deserialize)]
#[serde(untagged)]
enum Untagged {
    Number(i64),
    Fraction(f64),
    Text(String),
    Fields(Fields),
    Many(Vec<Self>),
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize)]
enum Key {
    #[serde(rename = "a")]
    A,
    #[serde(rename = "b")]
    B,
}

#[test]
fn every_kind_of_type_is_read_as_serde_json_reads_it() {
    for text in TEXTS {
        same_as_serde_json::<Value>(text);
        same_as_serde_json::<bool>(text);
        same_as_serde_json::<u8>(text);
        same_as_serde_json::<i8>(text);
        same_as_serde_json::<u16>(text);
        same_as_serde_json::<i16>(text);
        same_as_serde_json::<u32>(text);
        same_as_serde_json::<i32>(text);
        same_as_serde_json::<u64>(text);
        same_as_serde_json::<i64>(text);
        same_as_serde_json::<u128>(text);
        same_as_serde_json::<i128>(text);
        same_as_serde_json::<f32>(text);
        same_as_serde_json::<f64>(text);
        same_as_serde_json::<char>(text);
        same_as_serde_json::<String>(text);
        same_as_serde_json::<()>(text);
        same_as_serde_json::<Unit>(text);
        same_as_serde_json::<Newtype>(text);
        same_as_serde_json::<Option<Fields>>(text);
        same_as_serde_json::<Shape>(text);
        same_as_serde_json::<Untagged>(text);
        same_as_serde_json::<(u8, u8)>(text);
        same_as_serde_json::<Vec<Option<u8>>>(text);
        same_as_serde_json::<Vec<Vec<u8>>>(text);
        same_as_serde_json::<BTreeMap<String, Value>>(text);
        same_as_serde_json::<BTreeMap<Key, Value>>(text);
        same_as_serde_json::<BTreeMap<bool, u8>>(text);
        same_as_serde_json::<BTreeMap<i8, String>>(text);
        same_as_serde_json::<BTreeMap<u128, String>>(text);
        same_as_serde_json::<BTreeMap<Option<Newtype>, String>>(text);
    }
}

impl PartialOrd for Newtype {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Eq for Newtype {}

impl Ord for Newtype {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}

#[test]
fn an_empty_array_is_an_empty_object_for_types_that_want_one() {
    assert_eq!(deserialize::<BTreeMap<String, u8>>("[ ]"), Ok(BTreeMap::new()));
    let error = deserialize::<Fields>("[]").expect_err("refused").to_string();
    assert_eq!(error, "missing field `a`");
    assert_eq!(deserialize::<(Vec<u8>, BTreeMap<u8, u8>)>("[[],[]]"), Ok(Default::default()));
    assert!(deserialize::<BTreeMap<String, u8>>("[1]").is_err());
}

#[test]
fn a_fraction_of_zero_is_an_integer_for_types_that_want_one() {
    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Page {
        size: u8,
        #[serde(flatten)]
        rest: Rest,
    }
    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Rest {
        offset: i64,
        ratio: f64,
    }
    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(tag = "kind")]
    enum Kind {
        Count { count: u64 },
    }
    for (text, number) in [("3.0", 3), ("3e0", 3), ("-0.0", 0), ("0.0", 0), ("1e2", 100)] {
        assert_eq!(deserialize::<i8>(text).ok(), Some(number), "{text}");
        assert_eq!(deserialize::<u64>(text).ok(), Some(number as u64), "{text}");
        assert_eq!(deserialize::<i128>(text).ok(), Some(number.into()), "{text}");
        assert_eq!(deserialize::<u128>(text).ok(), Some(number as u128), "{text}");
        assert_eq!(deserialize::<Option<u32>>(text).ok(), Some(Some(number as u32)), "{text}");
    }
    for text in ["3.5", "1e-1", "1e300", "\"3.0\""] {
        assert!(deserialize::<i64>(text).is_err(), "{text}");
        assert!(deserialize::<u64>(text).is_err(), "{text}");
        assert!(deserialize::<i128>(text).is_err(), "{text}");
    }
    assert!(deserialize::<u128>("-1.0").is_err());
    assert!(deserialize::<u8>("256.0").is_err() && deserialize::<u64>("-1.0").is_err());
    let page = deserialize::<Page>(r#"{"size":1.0,"offset":0.0,"ratio":2.0}"#);
    assert_eq!(page, Ok(Page { size: 1, rest: Rest { offset: 0, ratio: 2.0 } }));
    let kind = deserialize::<Kind>(r#"{"count":9007199254740993.0,"kind":"Count"}"#);
    assert_eq!(kind, Ok(Kind::Count { count: 9_007_199_254_740_993 }));
    assert!(deserialize::<Kind>(r#"{"kind":"Count","count":1.5}"#).is_err());
    // Other numbers keep their kind.
    assert_eq!(deserialize::<Value>("0.5").ok(), Some(Value::from(0.5)));
    assert_eq!(deserialize::<Value>("-0.0").map(|zero| zero.is_f64()), Ok(true));
}

#[test]
fn a_key_is_a_number_only_as_json_spells_one() {
    assert!(deserialize::<BTreeMap<u128, u8>>(r#"{"1":2}"#).is_ok());
    for key in ["+1", "01", "1 ", " 1", r"\u0031", "1.0", "0x1"] {
        let text = alloc::format!(r#"{{"{key}":2}}"#);
        assert!(deserialize::<BTreeMap<u128, u8>>(&text).is_err(), "{text}");
        assert!(deserialize::<BTreeMap<i128, u8>>(&text).is_err(), "{text}");
        assert!(deserialize::<BTreeMap<u8, u8>>(&text).is_err(), "{text}");
    }
    assert!(deserialize::<BTreeMap<bool, u8>>(r#"{"true":2}"#).is_ok());
    assert!(deserialize::<BTreeMap<bool, u8>>(r#"{"\u0074rue":2}"#).is_err());
    let error = deserialize::<BTreeMap<bool, u8>>(r#"{"ƌ":2}"#).expect_err("no boolean");
    assert!(error.to_string().contains('ƌ'), "{error}");
}

#[test]
fn an_empty_array_is_as_deep_as_an_empty_object() {
    /// A list, or an object without members at the end of all lists.
    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Chain {
        #[serde(default)]
        next: Option<alloc::boxed::Box<Self>>,
    }
    let chain =
        |inner: &str, depth| [&r#"{"next":"#.repeat(depth), inner, &"}".repeat(depth)].concat();
    for (depth, fits) in [(0, true), (1, true), (126, true), (127, false), (128, false)] {
        let [array, object] =
            ["[ ]", "{ }"].map(|inner| deserialize::<Chain>(&chain(inner, depth)));
        assert_eq!(array.is_ok(), fits, "{depth}");
        assert_eq!(array.ok(), object.ok(), "{depth}");
    }
    // What follows is read.
    assert_eq!(deserialize::<(Chain, u8)>("[[],7]"), Ok((Chain { next: None }, 7)));
}

#[test]
fn a_lossy_reading_leaves_out_malformed_elements_and_what_was_left_out_of_them() {
    use crate::jsonrpc::{RawJson, list};

    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Tree {
        name: u8,
        #[serde(default, deserialize_with = "list")]
        trees: Vec<Self>,
        #[serde(default)]
        others: Vec<u8>,
    }
    let tree = |name, trees| Tree { name, trees, others: Vec::new() };
    let read = |text: &'static str| {
        let read = RawJson::trusted(text).decode_lossy::<Tree>();
        read.map(|(tree, omissions)| (tree, omissions.to_string()))
    };
    let text = r#"{"name":1,"trees":[7 , {"name":2,"trees":[[],{"name":3}, {"name":"x"}]},{"trees":[null]}]}"#;
    assert!(deserialize::<Tree>(text).is_err());
    let (value, omissions) = read(text).expect("a tree");
    assert_eq!(value, tree(1, [tree(2, [tree(3, Vec::new())].into())].into()));
    assert_eq!(
        omissions,
        "`/trees/0`: invalid type: integer `7`, expected an object; \
         `/trees/1/trees/0`: missing field `name`; \
         `/trees/1/trees/2`: `/name`: invalid type: string \"x\", expected an integer from 0 to 255; \
         `/trees/2`: missing field `name`"
    );
    // Other lists, and what is outside of lists, are read as ever.
    assert_eq!(read(r#"{"name":1,"others":[300]}"#).ok(), None);
    assert_eq!(read(r#"{"name":300}"#).ok(), None);
    assert_eq!(read(r#"{"name":1,"trees":{}}"#).ok(), None);
    let (value, omissions) =
        read(r#"{"name":1,"trees":[{"name":2,"others":[300]}]}"#).expect("a tree");
    assert_eq!(value, tree(1, Vec::new()));
    assert!(omissions.starts_with("`/trees/0`: "), "{omissions}");
    assert_eq!(read(r#"{"name":1,"trees":[ ]}"#), Ok((tree(1, Vec::new()), String::new())));

    // Any number is counted, a few are kept.
    let many = alloc::format!(r#"{{"name":1,"trees":[{}{{"name":2}}]}}"#, "[],".repeat(10_000));
    let (value, omissions) = RawJson::trusted(&many).decode_lossy::<Tree>().expect("a tree");
    assert_eq!((value.trees.len(), omissions.count(), omissions.iter().count()), (1, 10_000, 16));
    assert!(omissions.to_string().ends_with("; and 9984 more"), "{omissions}");
    for end in 0..text.len() {
        let _ = RawJson::trusted(&text[..end]).decode_lossy::<Tree>();
        let _ = RawJson::trusted(&[r#"{"trees":["#, &text[end..]].concat()).decode_lossy::<Tree>();
    }
}

#[test]
fn strings_without_escapes_and_raw_values_borrow() {
    let text = r#"{"a": "x","b":[1, {"c":2}] }"#;
    let read: BTreeMap<&str, &RawValue> = deserialize(text).expect("an object");
    assert_eq!((read["a"].get(), read["b"].get()), (r#""x""#, r#"[1, {"c":2}]"#));
    assert!(deserialize::<&str>(r#""a\n""#).is_err());
    let owned: alloc::boxed::Box<RawValue> = deserialize(text).expect("any value");
    assert_eq!(owned.get(), text);
}

#[test]
fn depth_has_a_bound() {
    let nested = |depth| ["[".repeat(depth), "]".repeat(depth)].concat();
    for depth in [127, 128, 100_000] {
        same_as_serde_json::<Value>(&nested(depth));
    }
    // Skipped values use no stack.
    assert!(deserialize::<de::IgnoredAny>(&nested(100_000)).is_ok());
}

#[test]
fn errors_name_the_expected_type() {
    let error = |text| deserialize::<Fields>(text).expect_err("refused").to_string();
    assert_eq!(error("{}"), "missing field `a`");
    assert_eq!(
        error(r#"{"a":"\u0041"}"#),
        r#"`/a`: invalid type: string "A", expected an integer from 0 to 255"#
    );
    assert_eq!(
        error(r#"{"a":256}"#),
        "`/a`: invalid value: integer `256`, expected an integer from 0 to 255"
    );
    assert_eq!(
        error(r#"{"a":1.5}"#),
        "`/a`: invalid type: number, expected an integer from 0 to 255"
    );
    assert_eq!(error("null"), "invalid type: null, expected an object");
    let error = deserialize::<f64>("1e400").expect_err("refused").to_string();
    assert_eq!(error, "number out of range");
    let error = deserialize::<f32>("1e400").expect_err("refused").to_string();
    assert_eq!(error, "number out of range");
}

#[test]
fn errors_name_the_innermost_value_that_is_wrong() {
    #[derive(Debug, serde::Deserialize)]
    #[expect(dead_code, reason = "only errors are looked at")]
    struct All {
        #[serde(default)]
        first: Vec<Fields>,
        #[serde(default)]
        shapes: BTreeMap<String, Shape>,
        #[serde(default)]
        untagged: Vec<Untagged>,
        #[serde(default)]
        tagged: Vec<Tagged>,
        #[serde(flatten)]
        rest: BTreeMap<String, u8>,
    }
    #[derive(Debug, serde::Deserialize)]
    #[serde(tag = "kind")]
    enum Tagged {
        Fields(#[expect(dead_code, reason = "only errors are looked at")] Fields),
    }
    let error = |text: &str| deserialize::<All>(text).expect_err("refused").to_string();
    for (text, place) in [
        (r#"{ "first" : [ {"a":1} , {"b":"x" , "a" : "y"} , {"a":2} ] }"#, "`/first/1/a`: "),
        (r#"{"first":[{"a":1,"b":2}]}"#, "`/first/0/b`: "),
        (r#"{"first":[{"a":1},{"b":"x" }],"shapes":{}}"#, "`/first/1`: missing field `a`"),
        (r#"{"first":[{"a":1,"c":{"d":[]}},{ }]}"#, "`/first/1`: missing field `a`"),
        (r#"{"first":[{"a":1,"a":1}]}"#, "`/first/0/a`: duplicate field `a`"),
        (r#"{"first":{"a":1}}"#, "`/first`: invalid type: object"),
        (r#"{"shapes":{"p/q~\u0007":{"Newtype":300}}}"#, "`/shapes/p~1q~0\u{fffd}`: "),
        (r#"{"shapes":{"s":{"Struct":{"a":1}}}}"#, "`/shapes/s/Struct`: missing field `b`"),
        (r#"{"shapes":{"s":"Other"}}"#, "`/shapes/s`: unknown variant `Other`"),
        // Values that are read as a whole first are named as a whole.
        (r#"{"untagged":[1,[{"b":"x"}],2]}"#, "`/untagged/1`: data did not match"),
        (r#"{"tagged":[{"kind":"Fields","a":"x"}]}"#, "`/tagged/0`: invalid type: string"),
        (r#"{"other":1,"more":"x","last":2}"#, "invalid type: string"),
        (r#"{"first":7,"last":[1,{"a":1e400}]}"#, "`/first`: invalid type: integer `7`"),
    ] {
        let error = error(text);
        assert!(error.starts_with(place), "{text}: {error}");
    }
    // A value that is decoded on its own continues the place of the value that contains it.
    let contents = r#"{"contents":[{"uri":"a:","text":"x"},{"text":"x","uri":[]}]}"#;
    let error = deserialize::<crate::protocol::ReadResourceResult>(contents).expect_err("refused");
    assert!(error.to_string().starts_with("`/contents/1/uri`: invalid type: array"), "{error}");
}

#[test]
fn null_is_an_empty_list_and_a_lossy_reading_leaves_out_malformed_hints() {
    use crate::jsonrpc::{RawJson, hint, list, list_of_hints};

    #[derive(Debug, Default, PartialEq, serde::Deserialize)]
    #[serde(default)]
    struct Item {
        #[serde(deserialize_with = "hint")]
        size: Option<u8>,
        #[serde(deserialize_with = "hint")]
        fields: Option<alloc::boxed::Box<Self>>,
        #[serde(deserialize_with = "list_of_hints")]
        icons: Option<Vec<u8>>,
        #[serde(deserialize_with = "list")]
        items: Vec<Self>,
        name: u8,
    }
    let read = |text: &'static str| {
        let read = RawJson::trusted(text).decode_lossy::<Item>();
        read.map(|(item, omissions)| (item, omissions.to_string()))
    };
    let whole = r#"{"size":1,"fields":{"size":2},"icons":[3],"items":[{"name":4}]}"#;
    let item = Item {
        size: Some(1),
        fields: Some(Item { size: Some(2), ..Item::default() }.into()),
        icons: Some(vec![3]),
        items: vec![Item { name: 4, ..Item::default() }],
        name: 0,
    };
    assert_eq!(deserialize(whole), Ok(item));
    assert_eq!(read(whole).map(|(_, omissions)| omissions), Ok(String::new()));
    let nulls = r#"{"size":null,"fields":null,"icons":null,"items":null}"#;
    assert_eq!(deserialize(nulls), Ok(Item::default()));
    assert_eq!(read(nulls), Ok((Item::default(), String::new())));
    let mut other = serde_json::Deserializer::from_str(nulls);
    assert_eq!(Deserialize::deserialize(&mut other).ok(), Some(Item::default()));

    let odd =
        r#"{"size": -1 ,"fields":{"size":"2","items":[{"size":[]}]},"icons":{"a":[1]},"name":5}"#;
    assert!(deserialize::<Item>(odd).is_err());
    let (item, omissions) = read(odd).expect("an item");
    let inner = Item { items: vec![Item::default()], ..Item::default() };
    assert_eq!(item, Item { fields: Some(inner.into()), name: 5, ..Item::default() });
    assert_eq!(
        omissions,
        "`/size`: invalid value: integer `-1`, expected an integer from 0 to 255; \
         `/fields/size`: invalid type: string \"2\", expected an integer from 0 to 255; \
         `/fields/items/0/size`: invalid type: array, expected an integer from 0 to 255; \
         `/icons`: invalid type: object, expected an array"
    );
    // A hint whose own content is refused is left out as a whole; an element is named alone.
    let (item, omissions) =
        read(r#"{"fields":{"size":"2","name":300},"icons":[1,"2"]}"#).expect("an item");
    assert_eq!(item, Item { icons: Some(vec![1]), ..Item::default() });
    assert_eq!(
        omissions,
        "`/fields`: `/name`: invalid value: integer `300`, expected an integer from 0 to 255; \
         `/icons/1`: invalid type: string \"2\", expected an integer from 0 to 255"
    );
    // What is no hint is strict.
    let error = read(r#"{"name":"x","size":[]}"#).expect_err("refused").to_string();
    assert_eq!(error, "`/name`: invalid type: string \"x\", expected an integer from 0 to 255");
}

#[test]
fn invalid_json_is_harmless() {
    for whole in TEXTS {
        for end in (0..whole.len()).filter(|end| whole.is_char_boundary(*end)) {
            let _ = deserialize::<Value>(&whole[..end]);
            let _ = deserialize::<Fields>(&whole[..end]);
            let _ = deserialize::<Shape>(&whole[end..]);
            let _ = deserialize::<Vec<Value>>(&["[,,", &whole[end..]].concat());
            let _ = deserialize::<Vec<Fields>>(&["[{}", &whole[end..]].concat());
        }
    }
}
