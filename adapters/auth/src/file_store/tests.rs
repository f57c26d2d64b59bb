use std::fs;
use std::thread;

use super::*;

/// A folder of a test's own, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("mcp-auth-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    /// A store in a folder that is not there yet.
    fn store(&self) -> FileStore {
        FileStore::new(self.0.join("inner/credentials.json"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn tokens(url: &str) -> CredentialKey {
    CredentialKey::Tokens(url.to_owned())
}

fn kept(store: &FileStore, key: &CredentialKey) -> Option<String> {
    store.load(key).unwrap().map(|it| it.as_str().to_owned())
}

#[test]
fn what_is_saved_is_loaded_until_it_is_removed() {
    let folder = Folder::new("saved");
    let store = folder.store();
    let key = tokens("https://r.example/mcp");
    assert_eq!(kept(&store, &key), None);
    store.remove(&key).unwrap();
    store.save(&key, &Credential::new("one")).unwrap();
    store.save(&key, &Credential::new("two")).unwrap();
    // The same text is another key for another kind of credential.
    let client = CredentialKey::Client("https://r.example/mcp".into());
    store.save(&client, &Credential::new("three")).unwrap();
    let again = FileStore::new(store.path());
    assert_eq!(kept(&again, &key).as_deref(), Some("two"));
    again.remove(&key).unwrap();
    assert_eq!(kept(&store, &key), None);
    assert_eq!(kept(&store, &client).as_deref(), Some("three"));
}

#[cfg(unix)]
#[test]
fn the_file_and_its_folder_are_the_owners_alone() {
    // Rule: [AUTHC-046].
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    let folder = Folder::new("modes");
    let store = folder.store();
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    // What another process has left behind lends its mode to nobody.
    fs::create_dir_all(&folder.0).unwrap();
    store.save(&tokens("a"), &Credential::new("b")).unwrap();
    let left = beside(store.path(), ".new");
    fs::write(&left, "left").unwrap();
    fs::set_permissions(&left, fs::Permissions::from_mode(0o666)).unwrap();
    store.save(&tokens("a"), &Credential::new("c")).unwrap();
    assert_eq!(mode(store.path()), 0o600);
    assert_eq!(mode(&beside(store.path(), ".lock")), 0o600);
    assert_eq!(mode(store.path().parent().unwrap()), 0o700);
    assert!(!left.exists());
}

#[cfg(unix)]
#[test]
fn a_file_that_others_can_read_is_refused() {
    // Rule: [AUTHC-046].
    use std::os::unix::fs::PermissionsExt;

    let folder = Folder::new("exposed");
    let store = folder.store();
    store.save(&tokens("a"), &Credential::new("secret")).unwrap();
    for mode in [0o640, 0o604, 0o622] {
        fs::set_permissions(store.path(), fs::Permissions::from_mode(mode)).unwrap();
        let loaded = store.load(&tokens("a"));
        assert!(matches!(loaded, Err(FileStoreError::Exposed { .. })), "{mode:o}");
        let saved = store.save(&tokens("a"), &Credential::new("other"));
        assert!(matches!(saved, Err(FileStoreError::Exposed { .. })), "{mode:o}");
    }
    fs::set_permissions(store.path(), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(kept(&store, &tokens("a")).as_deref(), Some("secret"));
}

#[test]
fn a_damaged_file_is_reported_once_and_kept() {
    let folder = Folder::new("damaged");
    let store = folder.store();
    store.save(&tokens("a"), &Credential::new("b")).unwrap();
    for (number, text) in [
        (1, r#"{"version":1,"credentials":{"x":"sec"#),
        (2, r#"{"version":1,"credentials":"sec"}"#),
    ] {
        private_file::replace(store.path(), text.as_bytes()).unwrap();
        let error = match number {
            1 => store.load(&tokens("a")).unwrap_err(),
            _ => store.save(&tokens("a"), &Credential::new("c")).unwrap_err(),
        };
        assert!(matches!(error, FileStoreError::Damaged { .. }), "{error}");
        assert!(!format!("{error} {error:?}").contains("sec\""), "{error:?}");
        let aside = beside(store.path(), &format!(".damaged-{number}"));
        assert!(error.to_string().contains(&*aside.to_string_lossy()), "{error}");
        assert_eq!(fs::read_to_string(aside).unwrap(), text);
        assert_eq!(kept(&store, &tokens("a")), None);
    }
}

#[test]
fn the_file_of_a_newer_program_stays() {
    let folder = Folder::new("newer");
    let store = folder.store();
    private_file::create_folder_of(store.path()).unwrap();
    let text = br#"{"version":2,"vault":[]}"#;
    private_file::replace(store.path(), text).unwrap();
    let saved = store.save(&tokens("a"), &Credential::new("b"));
    assert!(matches!(saved, Err(FileStoreError::Newer { .. })));
    assert_eq!(fs::read(store.path()).unwrap(), text);
}

#[test]
fn writers_at_the_same_time_lose_nothing() {
    const WRITERS: usize = 4;
    const WRITES: usize = 10;
    let folder = Folder::new("writers");
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            // Each has its own, as another process would.
            let store = folder.store();
            scope.spawn(move || {
                for write in 0..WRITES {
                    let key = tokens(&format!("{writer}-{write}"));
                    store.save(&key, &Credential::new("x")).unwrap();
                }
            });
        }
    });
    let store = folder.store();
    for writer in 0..WRITERS {
        for write in 0..WRITES {
            assert!(kept(&store, &tokens(&format!("{writer}-{write}"))).is_some());
        }
    }
}
