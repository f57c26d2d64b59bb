use super::*;

#[test]
fn a_valid_token_yields_its_subject_and_scopes() {
    // Rule: [AUTHS-012] [AUTHS-013].
    let issuer = Issuer::new();
    let token = issuer.check(&issuer.verifier(), &issuer.named("one"));
    let expected = VerifiedToken::new(Principal::new(format!("{ISSUER}|user")))
        .audiences([AUDIENCE])
        .scopes(["a", "b"])
        .expires_at(NOW + 7260);
    assert_eq!(token, Ok(expected));
}

#[test]
fn scopes_are_a_text_or_a_list() {
    let issuer = Issuer::new();
    let expected = |scopes: &[&str]| {
        VerifiedToken::new(Principal::new(format!("{ISSUER}|user")))
            .audiences([AUDIENCE])
            .scopes(scopes.iter().copied())
            .expires_at(NOW + 7260)
    };
    assert_eq!(issuer.with("scope", json!(["a", "c"])), Ok(expected(&["a", "c"])));
    assert_eq!(issuer.with("scope", Value::Null), Ok(expected(&[])));
    assert_eq!(issuer.with("scp", json!(["d"])), Ok(expected(&["a", "b", "d"])));
    assert_eq!(issuer.with("scp", json!("d e")), Ok(expected(&["a", "b", "d", "e"])));
}

#[test]
fn a_token_of_another_audience_is_refused() {
    // Rule: [AUTHS-013].
    let issuer = Issuer::new();
    for good in [
        json!([AUDIENCE]),
        json!(["https://other.example", AUDIENCE]),
        json!("HTTPS://R.example:443/mcp"),
    ] {
        assert!(issuer.with("aud", good.clone()).is_ok(), "{good}");
    }
    for bad in [
        json!("https://r.example"),
        json!("https://r.example/mcp/"),
        json!("https://r.example/mcp#x"),
        json!("https://r.example./mcp"),
        json!("https://r.example/mcp2"),
        json!([]),
        json!(""),
    ] {
        assert_eq!(issuer.with("aud", bad.clone()), Err(JwtError::Audience), "{bad}");
    }
    let named = issuer.token(&json!({ "alg": "ES256" }), &{
        let mut claims = claims();
        claims["aud"] = json!("api://mcp");
        claims
    });
    assert_eq!(issuer.check(&issuer.verifier(), &named), Err(JwtError::Audience));
    assert!(issuer.check(&issuer.verifier().audience("api://mcp"), &named).is_ok());
}

#[test]
fn a_token_of_another_issuer_is_refused() {
    // Rule: [AUTHS-012].
    let issuer = Issuer::new();
    for iss in ["https://a.example", "https://a.example/tenant/", "HTTPS://a.example/tenant", ""] {
        assert_eq!(issuer.with("iss", json!(iss)), Err(JwtError::Issuer), "{iss}");
    }
}

#[test]
fn a_token_is_good_for_its_time_and_for_the_leeway() {
    // Rule: [AUTHS-012].
    let issuer = Issuer::new();
    for (exp, result) in [
        (json!(NOW + 1), None),
        (json!(NOW - 59), None),
        (json!(NOW - 60), Some(JwtError::Expired)),
        (json!(0), Some(JwtError::Expired)),
        (json!(-1e300), Some(JwtError::Expired)),
    ] {
        assert_eq!(issuer.with("exp", exp.clone()).err(), result, "{exp}");
    }
    for (nbf, result) in [
        (json!(NOW), None),
        (json!(NOW + 60), None),
        (json!(NOW as f64 + 60.5), Some(JwtError::Early)),
        (json!(1e300), Some(JwtError::Early)),
    ] {
        assert_eq!(issuer.with("nbf", nbf.clone()).err(), result, "{nbf}");
    }
    let late = issuer.token(&json!({ "alg": "ES256" }), &{
        let mut claims = claims();
        claims["exp"] = json!(NOW - 300);
        claims
    });
    for leeway in [Duration::ZERO, Duration::MAX] {
        let fault = issuer.check(&issuer.verifier().leeway(leeway), &late);
        assert_eq!(fault, Err(JwtError::Expired), "{leeway:?}");
    }
    assert_eq!(*TokenRefusal::from(JwtError::Expired).without_cause(), TokenRefusal::Expired);
}

#[test]
fn a_token_is_bound_to_the_key_that_it_names() {
    let issuer = Issuer::new();
    let bound = issuer.with("cnf", json!({ "jkt": "x" }));
    let token = issuer.check(&issuer.verifier(), &issuer.named("one")).unwrap();
    assert_eq!(bound, Ok(token.bound_to("x")));
}

#[test]
fn a_token_that_is_bound_to_something_else_is_refused() {
    let issuer = Issuer::new();
    for confirmation in [
        json!({}),
        json!({ "x5t#S256": "x" }),
        json!({ "jkt": "x", "x5t#S256": "x" }),
        json!({ "jkt": 1 }),
        json!({ "jwk": { "kty": "EC" } }),
    ] {
        let bound = issuer.with("cnf", confirmation.clone());
        assert_eq!(bound, Err(JwtError::Bound), "{confirmation}");
    }
}

#[test]
fn missing_required_claims_are_refused() {
    // Rule: [AUTHS-012].
    let issuer = Issuer::new();
    for name in ["iss", "sub", "aud", "exp"] {
        for value in [Value::Null, json!({})] {
            let result = issuer.with(name, value);
            assert!(matches!(result, Err(JwtError::Malformed(_))), "{name}: {result:?}");
        }
        let mut claims = claims();
        claims.as_object_mut().unwrap().remove(name);
        let without = issuer.token(&json!({ "alg": "ES256", "kid": "one" }), &claims);
        let result = issuer.check(&issuer.verifier(), &without);
        assert!(matches!(result, Err(JwtError::Malformed(_))), "{name}: {result:?}");
    }
    assert!(matches!(issuer.with("sub", json!("")), Err(JwtError::Malformed(_))));
    assert_eq!(*TokenRefusal::from(JwtError::Malformed("")).without_cause(), TokenRefusal::Invalid);
}
