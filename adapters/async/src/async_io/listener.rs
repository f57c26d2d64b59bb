use hyper::rt::Timer;
use smol_hyper::rt::SmolTimer;

use super::AsyncIo;
use crate::HyperNetwork;

impl<R: AsyncIo> HyperNetwork for R {
    const HTTP2: bool = false;

    fn hyper_timer() -> impl Timer + Clone + Send + Sync + 'static {
        SmolTimer::new()
    }
}
