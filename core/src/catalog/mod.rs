//! stub
use crate::jsonrpc::*;
use crate::protocol::*;
/// s
#[derive(Clone, Debug, Default)]
pub struct Catalog {}
/// s
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// a
    pub tools: bool,
    /// a
    pub prompts: bool,
    /// a
    pub resources: bool,
}
impl Catalog {
    /// s
    pub fn complete(
        &self,
        declared: ServerCapabilities,
        _revision: Revision,
    ) -> ServerCapabilities {
        declared
    }
    /// s
    pub fn list(
        &self,
        _m: Method,
        _params: &RawJson<'_>,
        _revision: Revision,
        _cache: &CacheHints,
    ) -> Result<impl WriteJson + use<>, ErrorObject<'static>> {
        Ok(RawJson::EMPTY_OBJECT)
    }
    /// s
    pub fn check(
        &self,
        _m: Method,
        _s: Option<&str>,
        _p: &RawJson<'_>,
        _r: Revision,
    ) -> Result<(), ErrorObject<'static>> {
        Ok(())
    }
    /// s
    pub fn take_changes(&mut self) -> Changes {
        Changes::default()
    }
}
