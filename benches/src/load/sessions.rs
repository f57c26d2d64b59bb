//! Sessions over HTTP.

use super::Load;
use crate::HttpHarness;

struct Sessions {
    harness: HttpHarness,
    ids: Vec<String>,
    /// The index of the session to use next.
    turn: usize,
    work: fn(&mut Self),
}

const URI: &str = "file:///resource";

pub(super) fn call() -> Box<dyn Load> {
    sessions(|load| {
        // Avoids the session used last.
        load.turn = (load.turn + 7919) % load.ids.len();
        load.harness.call(&load.ids[load.turn]);
    })
}

pub(super) fn one_more() -> Box<dyn Load> {
    sessions(|load| {
        let id = load.harness.session();
        load.harness.end(&id);
    })
}

pub(super) fn news() -> Box<dyn Load> {
    let mut load = Sessions {
        harness: HttpHarness::new(),
        ids: Vec::new(),
        turn: 0,
        work: |load| load.harness.resource_updated(URI),
    };
    load.grow(1);
    load.harness.subscribe(&load.ids[0], URI, true);
    // The client reads its stream, so that no log grows.
    load.harness.listen(&load.ids[0], None);
    Box::new(load)
}

fn sessions(work: fn(&mut Sessions)) -> Box<dyn Load> {
    Box::new(Sessions { harness: HttpHarness::new(), ids: Vec::new(), turn: 0, work })
}

impl Load for Sessions {
    fn grow(&mut self, size: usize) {
        while self.ids.len() < size {
            self.ids.push(self.harness.session());
        }
    }

    fn work(&mut self) {
        (self.work)(self);
    }
}
