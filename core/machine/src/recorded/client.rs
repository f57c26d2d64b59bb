use mcp_sansio_sync::Arc;

use super::{Recordable, Recorded, StreamCall, Tape};
use crate::peer::{
    CallHandle, Client, ClientMachine, ClientOptions, ClientSession, InputHandle, Observation,
    RequestHandle,
};
use crate::{Instant, PanicGuard};

impl Recordable for Client {
    type Settings = (ClientOptions, Instant);
    type Call<'a> = StreamCall<'a>;
}

impl Recorded<Client> {
    /// Creates a client that records its commands, inputs and outputs on `tape`, if there is one,
    /// from the first one on. See [`Client::new`].
    #[must_use]
    pub fn new(
        options: ClientOptions,
        seed: u64,
        now: Instant,
        tape: impl Into<Option<Tape>>,
    ) -> Self {
        let settings = (options, now);
        let recorder = tape.into().and_then(|tape| tape.open::<Client>(&settings));
        Self { machine: Client::new(settings.0, seed, now), recorder }
    }

    /// See [`Client::restart`].
    pub fn restart(&mut self, now: Instant) -> bool {
        self.note(StreamCall::Restart(now));
        self.machine.restart(now)
    }

    /// See [`Client::suspend`].
    pub fn suspend(&mut self) -> bool {
        self.note(StreamCall::Suspend);
        self.machine.suspend()
    }

    /// See [`Client::resume`].
    pub fn resume(&mut self, now: Instant) {
        self.note(StreamCall::Resume(now));
        self.machine.resume(now);
    }
}

impl<M: Recordable + ClientMachine> ClientMachine for Recorded<M> {
    fn has_call(&self, call: CallHandle) -> bool {
        self.machine.has_call(call)
    }

    fn catch_panics(&mut self, guard: PanicGuard) {
        self.machine.catch_panics(guard);
    }

    fn session(&self) -> Option<&ClientSession> {
        self.machine.session()
    }

    fn observation_of_input(&self, input: InputHandle) -> Option<Arc<dyn Observation>> {
        self.machine.observation_of_input(input)
    }

    fn observation_of(&self, request: RequestHandle) -> Option<Arc<dyn Observation>> {
        self.machine.observation_of(request)
    }
}
