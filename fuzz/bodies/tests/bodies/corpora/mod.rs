//! Replays the committed corpora of the fuzz targets, and mutations of them.

mod mutation;

use std::fs;
use std::path::{Path, PathBuf};

use mcp_sansio_fuzz_bodies as bodies;

use mutation::Mutation;

/// Mutated inputs per target: one or two seconds of work.
const MUTATIONS: usize = 2000;

fn corpora() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus")
}

/// Returns the seeds of a target with their paths, sorted by name.
fn seeds(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let corpus = corpora().join(target);
    let entries = fs::read_dir(&corpus).expect("the corpus is committed");
    let mut paths: Vec<_> = entries.map(|it| it.expect("the corpus is readable").path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "no seeds in {}", corpus.display());
    let read = |path: PathBuf| {
        let seed = fs::read(&path).expect("a seed is readable");
        (path, seed)
    };
    paths.into_iter().map(read).collect()
}

fn replay(target: &str, run: fn(&[u8])) {
    for (path, seed) in seeds(target) {
        // The panic's context names the seed.
        let result = std::panic::catch_unwind(|| run(&seed));
        assert!(result.is_ok(), "seed {}", path.display());
    }
}

fn mutate(target: &str, run: fn(&[u8])) {
    let seeds = seeds(target).into_iter().map(|(_, seed)| seed).collect();
    let mut mutation = Mutation::new(seeds, &corpora().join("../words.dict"));
    for _ in 0..MUTATIONS {
        let input = mutation.input();
        let result = std::panic::catch_unwind(|| run(&input));
        assert!(result.is_ok(), "input b\"{}\"", input.escape_ascii());
    }
}

macro_rules! replay {
    ($($module:ident::$target:ident),+ $(,)?) => {
        $(
            #[test]
            fn $target() {
                replay(stringify!($target), $module::$target);
            }
        )+

        mod mutated {
            use super::*;

            $(
                #[test]
                fn $target() {
                    mutate(stringify!($target), $module::$target);
                }
            )+
        }

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
    bodies::auth_texts,
    bodies::envelope,
    bodies::http_client,
    bodies::http_heads,
    bodies::http_server,
    bodies::lines,
    bodies::messages,
    bodies::pair,
    bodies::peer_client,
    bodies::peer_server,
    bodies::split,
    bodies::sse,
    bodies::values,
}
