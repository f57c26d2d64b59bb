//! Replays the committed corpora of the fuzz targets.

use std::fs;
use std::path::{Path, PathBuf};

use mcp_sansio::fuzzing;

fn corpora() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus")
}

fn replay(target: &str, run: fn(&[u8])) {
    let corpus = corpora().join(target);
    let mut count = 0;
    for entry in fs::read_dir(&corpus).expect("the corpus is committed") {
        let path = entry.expect("the corpus is readable").path();
        let bytes = fs::read(&path).expect("a seed is readable");
        // The name of the seed at fault is in the panic's context.
        let result = std::panic::catch_unwind(|| run(&bytes));
        assert!(result.is_ok(), "seed {}", path.display());
        count += 1;
    }
    assert!(count > 0, "no seeds in {}", corpus.display());
}

macro_rules! replay {
    ($($(#[$feature:meta])? $target:ident),+ $(,)?) => {
        $(
            $(#[$feature])?
            #[test]
            fn $target() {
                replay(stringify!($target), fuzzing::$target);
            }
        )+

        #[test]
        fn every_corpus_and_every_target_is_replayed() {
            let replayed = [$(stringify!($target)),+];
            let folders = [corpora(), corpora().join("../fuzz_targets")];
            for entry in folders.iter().flat_map(|it| fs::read_dir(it).expect("it is committed")) {
                let path = entry.expect("the folder is readable").path();
                let target = path.file_stem().and_then(|it| it.to_str()).expect("a name");
                assert!(replayed.contains(&target), "{target} is not replayed");
            }
        }
    };
}

replay! {
    #[cfg(feature = "auth")] auth_texts,
    envelope,
    #[cfg(feature = "http")] http_client,
    #[cfg(feature = "http")] http_heads,
    #[cfg(feature = "http")] http_server,
    lines,
    messages,
    pair,
    peer_client,
    peer_server,
    split,
    sse,
    values,
}
