use mcp_sansio_sync::Arc;

use super::{Recordable, Recorded, StreamCall, Tape};
use crate::catalog::Catalog;
use crate::jsonrpc::RequestId;
use crate::peer::{Observation, RequestHandle, Server, ServerMachine, ServerOptions};
use crate::{PanicGuard, Revision};

impl Recordable for Server {
    type Settings = ServerOptions;
    type Call<'a> = StreamCall<'a>;
}

impl Recorded<Server> {
    /// Creates a server that records its commands, inputs and outputs on `tape`, if there is one,
    /// from the first one on. See [`Server::new`].
    #[must_use]
    pub fn new(options: ServerOptions, seed: u64, tape: impl Into<Option<Tape>>) -> Self {
        let recorder = tape.into().and_then(|tape| tape.open::<Server>(&options));
        Self { machine: Server::new(options, seed), recorder }
    }

    /// See [`Server::catch_panics`].
    pub fn catch_panics(&mut self, guard: PanicGuard) {
        self.machine.catch_panics(guard);
    }

    /// See [`Server::edit_catalog`].
    pub fn edit_catalog<T>(&mut self, edit: impl FnOnce(&mut Catalog) -> T) -> T {
        let Self { machine, recorder } = self;
        let caller = recorder.is_some().then(|| machine.caller().clone());
        let edited = machine.edit_catalog(|catalog| {
            let edited = edit(catalog);
            if let (Some(recorder), Some(caller)) = (recorder.as_mut(), &caller) {
                Self::tell(recorder, StreamCall::Edited(catalog, caller));
            }
            edited
        });
        if let Some(recorder) = recorder {
            Self::tell(recorder, StreamCall::Catalog(machine.catalog(), machine.session_key()));
        }
        edited
    }
}

impl<M: Recordable + ServerMachine> ServerMachine for Recorded<M> {
    fn revision_of(&self, request: RequestHandle) -> Option<Revision> {
        self.machine.revision_of(request)
    }

    fn id_of(&self, request: RequestHandle) -> Option<&RequestId> {
        self.machine.id_of(request)
    }

    fn observation_of(&self, request: RequestHandle) -> Option<Arc<dyn Observation>> {
        self.machine.observation_of(request)
    }
}
