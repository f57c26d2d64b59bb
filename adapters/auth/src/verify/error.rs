use mcp_sansio_oauth::protected_resource::TokenRefusal;

/// Why a token is not taken: for a log, as nothing of the token is in it. What the client is told of
/// it is a [`TokenRefusal`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JwtError {
    /// It is no JSON Web Token, is too long, or lacks what an access token has.
    #[error("the token is malformed: {0}")]
    Malformed(&'static str),
    /// It is signed in a way that is not allowed here, or not at all.
    #[error("the token is not signed with an allowed algorithm")]
    Algorithm,
    /// It is another kind of token.
    #[error("the token is no access token")]
    Type,
    /// Another issuer has issued it.
    #[error("the token is of another issuer")]
    Issuer,
    /// It is for another resource.
    #[error("the token is for another audience")]
    Audience,
    /// Its time is over.
    #[error("the token has expired")]
    Expired,
    /// Its time has not come.
    #[error("the token is not valid yet")]
    Early,
    /// It is bound to a key of the client (DPoP, or TLS), and possession of the key was not proved.
    #[error("the token is bound to a key and was presented without a proof")]
    Bound,
    /// The issuer has no such key, as far as its keys are known.
    #[error("the token is signed with a key that its issuer does not have")]
    Key,
    /// The signature is not that of the key.
    #[error("the signature of the token is wrong")]
    Signature,
    /// The keys of the issuer cannot be had. Why, in the words of whoever got them.
    #[error("the keys of the issuer cannot be had: {0}")]
    Unavailable(String),
}

impl From<JwtError> for TokenRefusal {
    fn from(fault: JwtError) -> Self {
        match fault {
            JwtError::Expired => Self::Expired,
            JwtError::Unavailable(_) => Self::Unavailable,
            _ => Self::Invalid,
        }
    }
}
