use std::collections::BTreeMap;

use super::failure::Failure;

/// The parameters of a request, from its query or from the form in its body.
#[derive(Default)]
pub(super) struct Parameters(BTreeMap<String, String>);

impl Parameters {
    /// Parses `application/x-www-form-urlencoded`.
    pub(super) fn parse(text: &[u8]) -> Result<Self, Failure> {
        let mut parameters = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(text).into_owned() {
            // A parameter without a value counts as absent, and no parameter may occur twice (RFC
            // 6749, section 3.1).
            if !value.is_empty() && parameters.insert(name, value).is_some() {
                return Err(Failure::request("a parameter occurs twice"));
            }
        }
        Ok(Self(parameters))
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Returns a required parameter, or an error with the description `missing`.
    pub(super) fn require(&self, name: &str, missing: &'static str) -> Result<&str, Failure> {
        self.get(name).ok_or_else(|| Failure::request(missing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_and_occur_once() {
        let parameters = Parameters::parse(b"a=1&b=x+y%2Fz&c=").unwrap();
        assert_eq!(
            ["a", "b", "c"].map(|name| parameters.get(name)),
            [Some("1"), Some("x y/z"), None]
        );
        assert!(parameters.require("c", "no c").is_err());
        assert!(Parameters::parse(b"a=1&a=1").is_err());
    }
}
