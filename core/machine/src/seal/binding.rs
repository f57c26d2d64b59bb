use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::fmt;

use serde::de::{DeserializeSeed, Deserializer as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::Principal;
use crate::jsonrpc::RawJson;

/// The request and the principal that a state is sealed for.
// MCP 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow [MRTR-007]
#[derive(Clone, Debug)]
pub struct Binding<'a> {
    pub(super) principal: Option<&'a Principal>,
    pub(super) method: &'a str,
    pub(super) params: [u8; 32],
}

impl<'a> Binding<'a> {
    /// Binds to a request of `method` with its complete `params` as received: the name of a tool or
    /// the URI of a resource, and all arguments.
    ///
    /// `_meta`, `inputResponses` and `requestState` are ignored, because they differ between the
    /// rounds. White space and the order of members are ignored too, because a client may serialize
    /// the request again.
    #[must_use]
    pub fn new(method: &'a str, params: &RawJson<'_>) -> Self {
        Self { principal: None, method, params: digest(params.as_str()) }
    }

    /// Also binds to a principal. Without one, only requests without a principal open the state.
    #[must_use]
    pub const fn principal(mut self, principal: Option<&'a Principal>) -> Self {
        self.principal = principal;
        self
    }
}

/// Members that a retry adds to the request or changes.
const PER_ROUND: [&str; 3] = ["_meta", "inputResponses", "requestState"];

/// Returns a digest of the members that are the same in each round of a request.
fn digest(params: &str) -> [u8; 32] {
    let mut members =
        match (&mut serde_json::Deserializer::from_str(params)).deserialize_map(TopLevel) {
            Ok(members) => members,
            Err(_) => return hash_text(params),
        };
    members.retain(|(name, _)| !PER_ROUND.contains(&&**name));
    let members = members.into_iter().map(|(name, value)| {
        let value = value.get();
        let mut hash = Sha256::new();
        let read = Canonical(&mut hash).deserialize(&mut serde_json::Deserializer::from_str(value));
        // The value cannot be read, such as a number out of range. Clients repeat it unchanged.
        (name, if read.is_ok() { hash.finalize().into() } else { hash_text(value) })
    });
    let mut hash = Sha256::new();
    object(&mut hash, members.collect());
    hash.finalize().into()
}

fn hash_text(text: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    frame(&mut hash, b'?', text);
    hash.finalize().into()
}

fn frame(hash: &mut Sha256, kind: u8, text: &str) {
    hash.update([kind]);
    hash.update((text.len() as u64).to_be_bytes());
    hash.update(text);
}

/// Hashes the members sorted by name. Members with the same name keep their order.
fn object(hash: &mut Sha256, mut members: Vec<(Cow<'_, str>, [u8; 32])>) {
    members.sort_by(|(one, _), (other, _)| one.cmp(other));
    hash.update(b"{");
    for (name, value) in members {
        frame(hash, b':', &name);
        hash.update(value);
    }
    hash.update(b"}");
}

struct TopLevel;

impl<'de> Visitor<'de> for TopLevel {
    type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(members)
    }
}

/// Hashes a value so that different values have different hashes, regardless of how they are
/// written. Each kind of value has its own tag byte and is self-delimiting.
struct Canonical<'h>(&'h mut Sha256);

impl<'de> DeserializeSeed<'de> for Canonical<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Canonical<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.0.update(b"n");
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.0.update(if value { b"t" } else { b"f" });
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.0.update(b"+");
        self.0.update(value.to_be_bytes());
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.0.update(b"-");
        self.0.update(value.to_be_bytes());
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.0.update(b".");
        self.0.update(value.to_bits().to_be_bytes());
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        frame(self.0, b'"', value);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.0.update(b"[");
        while items.next_element_seed(Canonical(self.0))?.is_some() {}
        self.0.update(b"]");
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut members = Vec::new();
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            let mut hash = Sha256::new();
            map.next_value_seed(Canonical(&mut hash))?;
            members.push((name, hash.finalize().into()));
        }
        object(self.0, members);
        Ok(())
    }
}
