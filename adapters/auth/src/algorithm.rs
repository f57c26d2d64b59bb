use std::fmt;
use std::str::FromStr;

use crate::client::KeyError;

/// A signature algorithm, named as in RFC 7518 or RFC 8037.
///
/// All are asymmetric. Neither `none` nor an HMAC is included, so a token cannot select one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// RSA with PKCS #1 v1.5 padding and SHA-256, with at least 2048 bits.
    Rs256,
    /// RSA with PSS padding and SHA-256, with at least 2048 bits.
    Ps256,
    /// Ed25519.
    EdDsa,
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: [Self; 5] = [Self::Es256, Self::Es384, Self::Rs256, Self::Ps256, Self::EdDsa];

    /// Returns its name, as used in `alg`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::Rs256 => "RS256",
            Self::Ps256 => "PS256",
            Self::EdDsa => "EdDSA",
        }
    }
}

impl FromStr for Algorithm {
    type Err = KeyError;

    /// Case-sensitive.
    fn from_str(name: &str) -> Result<Self, KeyError> {
        Self::ALL.into_iter().find(|it| it.as_str() == name).ok_or(KeyError::UnknownAlgorithm)
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_algorithm_has_one_name() {
        for algorithm in Algorithm::ALL {
            assert_eq!(algorithm.as_str().parse(), Ok(algorithm));
        }
        for name in ["none", "None", "HS256", "es256", ""] {
            assert_eq!(name.parse::<Algorithm>(), Err(KeyError::UnknownAlgorithm), "{name}");
        }
    }
}
