use super::*;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn new_keys_take_the_place_of_old_ones() {
    let mut issuer = Issuer::new();
    let verifier = issuer.verifier();
    let old = issuer.named("one");
    assert!(issuer.check(&verifier, &old).is_ok());
    issuer.key = key(&issuer.random);
    issuer.publish(json!({ "keys": [issuer.jwk("two")] }));
    let new = issuer.named("two");
    assert!(issuer.check_after(31 * SECOND, &verifier, &new).is_ok());
    assert_eq!(issuer.fetches(), 2);
    assert_eq!(issuer.check_after(32 * SECOND, &verifier, &old), Err(JwtError::Key));
}

#[test]
fn a_token_without_a_key_id_is_verified_by_a_new_key() {
    let mut issuer = Issuer::new();
    let verifier = issuer.verifier();
    let unnamed = |issuer: &Issuer| issuer.token(&json!({ "alg": "ES256" }), &claims());
    assert!(issuer.check(&verifier, &unnamed(&issuer)).is_ok());
    issuer.key = key(&issuer.random);
    issuer.publish(json!({ "keys": [issuer.jwk("two"), { "kty": "?" }, 5] }));
    assert!(issuer.check_after(31 * SECOND, &verifier, &unnamed(&issuer)).is_ok());
    assert!(issuer.check_after(32 * SECOND, &verifier, &issuer.named("two")).is_ok());
    assert_eq!(issuer.fetches(), 2);
}

#[test]
fn a_token_that_names_a_key_is_verified_by_a_key_without_a_name() {
    let mut issuer = Issuer::new();
    let unnamed = |issuer: &Issuer| {
        let mut jwk = issuer.jwk("");
        jwk.as_object_mut().unwrap().remove("kid");
        json!({ "keys": [jwk] })
    };
    issuer.publish(unnamed(&issuer));
    let verifier = issuer.verifier();
    let old = issuer.named("one");
    assert!(issuer.check(&verifier, &old).is_ok());
    issuer.key = key(&issuer.random);
    issuer.publish(unnamed(&issuer));
    assert!(issuer.check_after(31 * SECOND, &verifier, &issuer.named("one")).is_ok());
    assert_eq!(issuer.fetches(), 2);
    assert_eq!(issuer.check_after(32 * SECOND, &verifier, &old), Err(JwtError::Signature));
}

#[test]
fn tokens_that_name_unknown_keys_have_them_fetched_once_in_a_while() {
    let issuer = Issuer::new();
    let verifier = issuer.verifier().interval(60 * SECOND);
    assert!(issuer.check(&verifier, &issuer.named("one")).is_ok());
    for second in 1..240 {
        let forged = issuer.named(&format!("forged-{second}"));
        let result = issuer.check_after(second * SECOND, &verifier, &forged);
        assert_eq!(result, Err(JwtError::Key));
        assert!(issuer.check_after(second * SECOND, &verifier, &issuer.named("one")).is_ok());
    }
    assert_eq!(issuer.fetches(), 4);
    // A token that fails the cheap checks causes no fetch.
    let foreign = issuer.token(&json!({ "alg": "ES256", "kid": "x" }), &json!({}));
    assert!(issuer.check_after(600 * SECOND, &verifier, &foreign).is_err());
    assert_eq!(issuer.fetches(), 4);
}

#[test]
fn keys_outlive_an_issuer_that_is_down_by_an_hour() {
    let issuer = Issuer::new();
    let verifier = issuer.verifier();
    let good = issuer.named("one");
    assert!(issuer.check(&verifier, &good).is_ok());
    issuer.documents.lock().unwrap().clear();
    assert!(issuer.check_after(899 * SECOND, &verifier, &good).is_ok());
    assert_eq!(issuer.fetches(), 1);
    assert!(issuer.check_after(3599 * SECOND, &verifier, &good).is_ok());
    assert_eq!(issuer.fetches(), 2);
    let gone = issuer.check_after(3600 * SECOND, &verifier, &good);
    assert!(matches!(gone, Err(JwtError::Unavailable(_))), "{gone:?}");
    assert_eq!(*TokenRefusal::from(gone.unwrap_err()).without_cause(), TokenRefusal::Unavailable);
}

#[test]
fn a_withdrawn_key_expires_after_fifteen_minutes() {
    let issuer = Issuer::new();
    let verifier = issuer.verifier();
    let good = issuer.named("one");
    assert!(issuer.check(&verifier, &good).is_ok());
    issuer.publish(json!({ "keys": [] }));
    assert!(issuer.check_after(899 * SECOND, &verifier, &good).is_ok());
    assert_eq!(issuer.check_after(900 * SECOND, &verifier, &good), Err(JwtError::Key));
}

#[test]
fn a_fetch_that_fails_is_not_repeated_at_once() {
    let issuer = Issuer::new();
    let verifier = issuer.verifier();
    let jwks = issuer.documents.lock().unwrap().drain().next().unwrap();
    for second in 0..30 {
        let result = issuer.check_after(second * SECOND, &verifier, &issuer.named("one"));
        assert!(matches!(result, Err(JwtError::Unavailable(_))), "{result:?}");
    }
    assert_eq!(issuer.fetches(), 1);
    issuer.documents.lock().unwrap().extend([jwks]);
    assert!(issuer.check_after(30 * SECOND, &verifier, &issuer.named("one")).is_ok());
}

#[test]
fn keys_are_found_by_the_metadata_of_the_issuer() {
    let issuer = Issuer::new();
    let metadata = |issuer: &str, jwks: &str| text(&json!({ "issuer": issuer, "jwks_uri": jwks }));
    let check = |document: Option<Vec<u8>>| {
        let mut documents = issuer.documents.lock().unwrap();
        documents.remove(METADATA);
        documents.extend(document.map(|it| (METADATA.to_owned(), it)));
        drop(documents);
        let verifier = JwtVerifier::new(ISSUER, AUDIENCE, issuer.fetch()).unwrap();
        issuer.check(&verifier, &issuer.named("one")).map(drop)
    };
    assert_eq!(check(Some(metadata(ISSUER, "https://a.example/jwks"))), Ok(()));
    for document in [
        None,
        Some(Vec::from("{}")),
        Some(metadata("https://a.example", "https://a.example/jwks")),
        Some(metadata(ISSUER, "http://a.example/jwks")),
        Some(metadata(ISSUER, "https://a.example/nothing")),
        Some(vec![b' '; mcp_sansio::http::DOCUMENT_LENGTH_MAX + 1]),
    ] {
        let result = check(document);
        assert!(matches!(result, Err(JwtError::Unavailable(_))), "{result:?}");
    }
    assert!(JwtVerifier::new("a.example", AUDIENCE, issuer.fetch()).is_err());
    // All URLs are tried.
    let urls =
        mcp_sansio_oauth::MetadataUrls::for_issuer(mcp_sansio::Revision::LATEST, ISSUER).unwrap();
    let urls: Vec<String> = urls.into_iter().map(|url| url.as_str().to_owned()).collect();
    let page = |url: &String| (url.clone(), Vec::from("<!doctype html>"));
    issuer.documents.lock().unwrap().extend(urls.iter().map(page));
    let last = urls.last().unwrap().clone();
    let right = metadata(ISSUER, "https://a.example/jwks");
    issuer.documents.lock().unwrap().insert(last, right);
    let verifier = JwtVerifier::new(ISSUER, AUDIENCE, issuer.fetch()).unwrap();
    assert!(issuer.check(&verifier, &issuer.named("one")).is_ok());
    assert!(issuer.fetches() > urls.len());
}

#[test]
fn keys_are_not_fetched_over_an_insecure_url() {
    let issuer = Issuer::new();
    for (jwks, fetches) in [("http://a.example/jwks", 0), ("http://127.0.0.1:8080/jwks", 1)] {
        let before = issuer.fetches();
        let jwks = Location::parse(jwks).unwrap();
        let verifier = JwtVerifier::with_jwks_url(ISSUER, AUDIENCE, &jwks, issuer.fetch());
        let result = issuer.check(&verifier, &issuer.named("one"));
        assert!(matches!(result, Err(JwtError::Unavailable(_))), "{result:?}");
        assert_eq!(issuer.fetches() - before, fetches, "{jwks:?}");
    }
}

#[test]
fn concurrent_lookups_share_one_fetch() {
    let issuer = Issuer::new();
    let fetches = Arc::new(AtomicUsize::new(0));
    let arrived: Arc<Mutex<Option<Vec<u8>>>> = Arc::default();
    let fetch = {
        let (fetches, arrived) = (Arc::clone(&fetches), Arc::clone(&arrived));
        move |_| {
            fetches.fetch_add(1, Ordering::Relaxed);
            let arrived = Arc::clone(&arrived);
            std::future::poll_fn(move |_| match arrived.lock().unwrap().clone() {
                Some(document) => Poll::Ready(Ok::<_, String>(document)),
                None => Poll::Pending,
            })
        }
    };
    let jwks = Location::parse("https://a.example/jwks").unwrap();
    let verifier = JwtVerifier::with_jwks_url(ISSUER, AUDIENCE, &jwks, fetch);
    let (good, forged) = (issuer.named("one"), issuer.named("two"));
    let mut first = Box::pin(verifier.verify(&good, NOW));
    let mut second = Box::pin(verifier.verify(&forged, NOW + 1));
    assert!(poll(first.as_mut()).is_pending());
    assert!(poll(second.as_mut()).is_pending());
    // The waiter that started the fetch may be dropped; the fetch continues for the others.
    drop(first);
    *arrived.lock().unwrap() = Some(text(&json!({ "keys": [issuer.jwk("one")] })));
    assert_eq!(poll(second.as_mut()), Poll::Ready(Err(JwtError::Key)));
    assert!(issuer.check_after(2 * SECOND, &verifier, &good).is_ok());
    assert_eq!(fetches.load(Ordering::Relaxed), 1);
}

#[test]
fn a_fetch_that_never_ends_times_out() {
    let issuer = Issuer::new();
    let fetches = Arc::new(AtomicUsize::new(0));
    let fetch = {
        let fetches = Arc::clone(&fetches);
        move |_| {
            fetches.fetch_add(1, Ordering::Relaxed);
            std::future::pending::<Result<Vec<u8>, String>>()
        }
    };
    let jwks = Location::parse("https://a.example/jwks").unwrap();
    let verifier = JwtVerifier::with_jwks_url(ISSUER, AUDIENCE, &jwks, fetch);
    let good = issuer.named("one");
    for (second, begun) in [(0, 1), (29, 1), (30, 2), (59, 2), (60, 3)] {
        let mut check = pin!(verifier.verify(&good, NOW + second));
        assert!(poll(check.as_mut()).is_pending());
        assert_eq!(fetches.load(Ordering::Relaxed), begun, "{second}");
    }
}

#[test]
fn an_issuer_that_hangs_delays_only_the_request_that_fetches_and_those_without_a_known_key() {
    let issuer = Issuer::new();
    let jwks = Arc::new(Mutex::new(Some(text(&json!({ "keys": [issuer.jwk("one")] })))));
    let served = Arc::clone(&jwks);
    let fetch = move |_| {
        let served = Arc::clone(&served);
        std::future::poll_fn(move |_| match served.lock().unwrap().clone() {
            Some(document) => Poll::Ready(Ok::<_, String>(document)),
            None => Poll::Pending,
        })
    };
    let url = Location::parse("https://a.example/jwks").unwrap();
    let verifier = JwtVerifier::with_jwks_url(ISSUER, AUDIENCE, &url, fetch);
    let (good, unknown) = (issuer.named("one"), issuer.named("two"));
    assert!(issuer.check(&verifier, &good).is_ok());
    jwks.lock().unwrap().take();
    let mut fetching = Box::pin(verifier.verify(&good, NOW + 900));
    assert!(poll(fetching.as_mut()).is_pending());
    assert!(issuer.check_after(901 * SECOND, &verifier, &good).is_ok());
    assert!(poll(pin!(verifier.verify(&unknown, NOW + 902))).is_pending());
    // If that request is dropped, the others continue the fetch.
    drop(fetching);
    *jwks.lock().unwrap() = Some(text(&json!({ "keys": [] })));
    assert_eq!(issuer.check_after(903 * SECOND, &verifier, &good), Err(JwtError::Key));
}
