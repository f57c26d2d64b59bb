use super::*;

#[test]
fn a_token_without_a_signature_is_refused() {
    // Rule: [AUTHS-012].
    let issuer = Issuer::new();
    for alg in ["none", "None", "NONE", ""] {
        let header = json!({ "alg": alg, "kid": "one" });
        assert_eq!(issuer.under(&header), Err(JwtError::Algorithm), "{alg}");
    }
    let good = issuer.named("one");
    let (input, signature) = good.rsplit_once('.').unwrap();
    let verifier = issuer.verifier();
    assert_eq!(issuer.check(&verifier, &format!("{input}.")), Err(JwtError::Signature));
    let other = issuer.token(&json!({ "alg": "ES256", "kid": "one" }), &json!({}));
    let (_, foreign) = other.rsplit_once('.').unwrap();
    assert_eq!(issuer.check(&verifier, &format!("{input}.{foreign}")), Err(JwtError::Signature));
    for malformed in [
        "",
        "a",
        "a.b",
        "a.b.c",
        &*format!("{input}.{signature}="),
        &*format!("{input}.{signature}.{signature}"),
        &*format!("{good}\n"),
        &*format!("W10.{input}"),
    ] {
        let result = issuer.check(&verifier, malformed);
        assert!(matches!(result, Err(JwtError::Malformed(_))), "{malformed}: {result:?}");
    }
}

#[test]
fn a_public_key_is_not_taken_for_a_shared_secret() {
    // Rule: [AUTHS-012].
    let issuer = Issuer::new();
    issuer.publish(json!({ "keys": [
        issuer.jwk("one"),
        { "kty": "oct", "kid": "two", "k": "c2VjcmV0", "alg": "HS256" },
    ] }));
    for kid in ["one", "two"] {
        let header = json!({ "alg": "HS256", "kid": kid });
        let secret = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, b"secret");
        let token = issuer.token(&header, &claims());
        let (input, _) = token.rsplit_once('.').unwrap();
        let tag = URL_SAFE_NO_PAD.encode(ring::hmac::sign(&secret, input.as_bytes()));
        let result = issuer.check(&issuer.verifier(), &format!("{input}.{tag}"));
        assert_eq!(result, Err(JwtError::Algorithm), "{kid}");
    }
    let secret = issuer.under(&json!({ "alg": "ES256", "kid": "two" }));
    assert_eq!(secret, Err(JwtError::Key));
}

#[test]
fn the_key_decides_over_the_algorithm() {
    let issuer = Issuer::new();
    for alg in ["ES384", "RS256", "PS256", "EdDSA"] {
        let result = issuer.under(&json!({ "alg": alg, "kid": "one" }));
        assert_eq!(result, Err(JwtError::Key), "{alg}");
    }
    let verifier = issuer.verifier().algorithms([Algorithm::Rs256]);
    assert_eq!(issuer.check(&verifier, &issuer.named("one")), Err(JwtError::Algorithm));
    for (member, value) in
        [("use", json!("enc")), ("key_ops", json!(["sign"])), ("alg", json!("ES256K"))]
    {
        let mut jwk = issuer.jwk("one");
        jwk[member] = value;
        issuer.publish(json!({ "keys": [jwk] }));
        let result = issuer.check(&issuer.verifier(), &issuer.named("one"));
        assert_eq!(result, Err(JwtError::Key), "{member}");
    }
}

#[test]
fn a_key_embedded_in_a_token_is_ignored() {
    // Rule: [AUTHS-012].
    let (issuer, forger) = (Issuer::new(), Issuer::new());
    let header = json!({
        "alg": "ES256", "kid": "one", "jwk": forger.jwk("one"), "jku": "https://evil.example",
    });
    let forged = forger.token(&header, &claims());
    assert_eq!(issuer.check(&issuer.verifier(), &forged), Err(JwtError::Signature));
    assert_eq!(issuer.fetches(), 1);
}

#[test]
fn another_kind_of_token_is_refused() {
    // Rule: [AUTHS-012].
    let issuer = Issuer::new();
    for typ in [json!("at+jwt"), json!("AT+JWT"), json!("application/at+jwt"), json!("JWT")] {
        assert!(issuer.under(&json!({ "alg": "ES256", "typ": typ })).is_ok(), "{typ}");
    }
    for typ in ["dpop+jwt", "logout+jwt", "", "at+jwt "] {
        let result = issuer.under(&json!({ "alg": "ES256", "typ": typ }));
        assert_eq!(result, Err(JwtError::Type), "{typ}");
    }
    let critical = issuer.under(&json!({ "alg": "ES256", "crit": ["b64"], "b64": false }));
    assert!(matches!(critical, Err(JwtError::Malformed(_))), "{critical:?}");
}

#[test]
fn a_member_that_is_there_twice_is_refused() {
    let issuer = Issuer::new();
    let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"ES256","alg":"ES256"}"#);
    let good = issuer.named("one");
    let (_, rest) = good.split_once('.').unwrap();
    let result = issuer.check(&issuer.verifier(), &format!("{header}.{rest}"));
    assert!(matches!(result, Err(JwtError::Malformed(_))), "{result:?}");
}

#[test]
fn a_token_of_a_signer_is_verified() {
    use crate::Signer;

    let issuer = Issuer::new();
    let encode = |it: &Value| URL_SAFE_NO_PAD.encode(text(it));
    for (algorithm, pem) in crate::client::sign::tests::KEYS {
        let signer = match pem {
            Some(pem) => Signer::from_pkcs8_pem(pem.as_bytes(), algorithm).unwrap(),
            None => Signer::generate_es256().unwrap(),
        };
        let mut jwk: Value = serde_json::from_str(&signer.public_jwk()).unwrap();
        jwk["kid"] = json!("signer");
        issuer.publish(json!({ "keys": [jwk] }));
        let header = json!({ "alg": algorithm.as_str(), "kid": "signer" });
        let input = format!("{}.{}", encode(&header), encode(&claims()));
        let signature = signer.sign(algorithm.as_str(), input.as_bytes()).unwrap();
        let token = format!("{input}.{}", URL_SAFE_NO_PAD.encode(&signature));
        let result = issuer.check(&issuer.verifier(), &token);
        assert!(result.is_ok(), "{algorithm}: {result:?}");
        let mut changed = signature;
        changed[7] ^= 1;
        let token = format!("{input}.{}", URL_SAFE_NO_PAD.encode(&changed));
        assert_eq!(issuer.check(&issuer.verifier(), &token), Err(JwtError::Signature));
    }
}
