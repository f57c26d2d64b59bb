/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RedisStoreError {
    /// The URL or the [prefix](crate::RedisOptions::prefix) is invalid: the caller's fault.
    #[error("invalid options for Redis: {0}")]
    Options(String),
    /// Redis cannot be reached, or refuses the user: the deployment's fault. It may be temporary.
    #[error("Redis is not available: {0}")]
    Unavailable(#[source] redis::RedisError),
    /// The keys under the prefix belong to an incompatible version of this crate. Use another
    /// prefix, or end the other nodes and remove the keys.
    #[error("the keys under this prefix have schema {found}, and this version uses {used}")]
    Schema {
        /// The version of the keys.
        found: String,
        /// The version of this crate.
        used: &'static str,
    },
}
