use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};

use super::*;
use crate::client::private_file::tests::Folder;

const P256: &str = include_str!("keys/p256.pem");
const RSA: &str = include_str!("keys/rsa2048.pem");
const ED25519: &str = include_str!("keys/ed25519.pem");

/// A key for every algorithm, generated with OpenSSL for this test; `None` is generated at run
/// time.
pub(crate) const KEYS: [(Algorithm, Option<&str>); 6] = [
    (Algorithm::Es256, None),
    (Algorithm::Es256, Some(P256)),
    (Algorithm::Es384, Some(include_str!("keys/p384.pem"))),
    (Algorithm::Rs256, Some(RSA)),
    (Algorithm::Ps256, Some(RSA)),
    (Algorithm::EdDsa, Some(ED25519)),
];

fn read(pem: &str, algorithm: Algorithm) -> Result<(), KeyError> {
    Signer::from_pkcs8_pem(pem.as_bytes(), algorithm).map(drop)
}

#[test]
fn a_generated_key_signs_what_its_public_half_verifies() {
    let signer = Signer::generate_es256().unwrap();
    let signature = signer.sign("ES256", b"a.b").unwrap();
    assert_eq!(signature.len(), 64);
    let jwk: serde_json::Value = serde_json::from_str(&signer.public_jwk()).unwrap();
    assert_eq!((jwk["kty"].as_str(), jwk["crv"].as_str()), (Some("EC"), Some("P-256")));
    let number = |name: &str| URL_SAFE_NO_PAD.decode(jwk[name].as_str().unwrap()).unwrap();
    let point = [vec![4], number("x"), number("y")].concat();
    let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
    assert!(public.verify(b"a.b", &signature).is_ok());
    assert!(public.verify(b"a.c", &signature).is_err());
    assert_ne!(Signer::generate_es256().unwrap().public_jwk(), signer.public_jwk());
}

#[test]
fn the_public_half_has_nothing_of_the_private_one() {
    for (algorithm, pem) in KEYS {
        let Some(pem) = pem else { continue };
        let signer = Signer::from_pkcs8_pem(pem.as_bytes(), algorithm).unwrap();
        let jwk = signer.public_jwk();
        let members: serde_json::Map<_, _> = serde_json::from_str(&jwk).unwrap();
        for private in ["d", "p", "q", "dp", "dq", "qi"] {
            assert!(!members.contains_key(private), "{jwk}");
        }
        let key = signer.dpop_key();
        assert_eq!((&*key.algorithm, key.jwk), (algorithm.as_str(), jwk));
        assert_eq!(format!("{signer:?}"), format!("Signer {{ algorithm: {algorithm:?}, .. }}"));
    }
}

#[test]
fn an_invalid_key_is_refused() {
    let weak = include_str!("keys/rsa1024.pem");
    let encrypted = include_str!("keys/p256-encrypted.pem");
    let public = include_str!("keys/p256-public.pem");
    let cut = &P256[..P256.len() / 2];
    for pem in ["", "x", weak, encrypted, public, cut] {
        for algorithm in Algorithm::ALL {
            assert_eq!(read(pem, algorithm), Err(KeyError::NotAKey), "{pem}");
        }
    }
    let older = include_str!("keys/p256-sec1.pem");
    assert_eq!(read(older, Algorithm::Es256), Err(KeyError::NotPkcs8));
}

#[test]
fn a_key_for_another_algorithm_is_refused() {
    for (pem, algorithm) in [
        (P256, Algorithm::Es384),
        (P256, Algorithm::Rs256),
        (RSA, Algorithm::Es256),
        (ED25519, Algorithm::Es256),
        (RSA, Algorithm::EdDsa),
    ] {
        assert_eq!(read(pem, algorithm), Err(KeyError::OtherAlgorithm(algorithm)));
    }
}

#[test]
fn a_signer_signs_with_its_own_algorithm_alone() {
    let signer = Signer::from_pkcs8_pem(RSA.as_bytes(), Algorithm::Rs256).unwrap();
    for asked in ["PS256", "ES256", "none", ""] {
        let failure = signer.sign(asked, b"a.b").unwrap_err();
        assert_eq!(failure, KeyError::NotRequested(Algorithm::Rs256));
        assert!(ActionFailure::from(failure).to_string().contains("RS256"));
    }
}

#[test]
fn a_key_in_a_file_is_made_once_and_stays() {
    // Rule: [AUTHC-046].
    let folder = Folder::new("key");
    let path = folder.path().join("inner/dpop.pem");
    let made = Signer::open_es256(&path).unwrap();
    let again = Signer::open_es256(&path).unwrap();
    assert_eq!(made.public_jwk(), again.public_jwk());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        assert!(matches!(Signer::open_es256(&path), Err(PrivateFileError::Exposed { .. })));
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    }
    std::fs::write(&path, RSA).unwrap();
    let fault = KeyError::OtherAlgorithm(Algorithm::Es256);
    let other = Signer::open_es256(&path).unwrap_err();
    assert!(matches!(other, PrivateFileError::Key { fault: it, .. } if it == fault), "{other}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), RSA);
}

#[test]
fn concurrent_key_creation_yields_one_key() {
    let folder = Folder::new("keys");
    let path = folder.path().join("dpop.pem");
    let jwks = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| Signer::open_es256(&path).unwrap().public_jwk()))
            .collect();
        threads.into_iter().map(|it| it.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(jwks.iter().all(|it| *it == jwks[0]));
}
