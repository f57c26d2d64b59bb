use std::{fs, thread};

use super::*;
use crate::client::private_file::UntrustedPath;
use crate::client::private_file::tests::Folder;

/// Returns a store in a folder that does not exist yet.
fn store(folder: &Folder) -> FileStore {
    FileStore::new(folder.path().join("inner/credentials.json"))
}

fn tokens(url: &str) -> CredentialKey {
    CredentialKey::Tokens(url.to_owned())
}

fn kept(store: &FileStore, key: &CredentialKey) -> Option<String> {
    store.load(key).unwrap().map(|it| it.as_str().to_owned())
}

#[test]
fn a_saved_credential_is_loaded_until_it_is_removed() {
    let folder = Folder::new("saved");
    let store = store(&folder);
    let key = tokens("https://r.example/mcp");
    assert_eq!(kept(&store, &key), None);
    store.remove(&key).unwrap();
    store.save(&key, &Credential::new("one")).unwrap();
    store.save(&key, &Credential::new("two")).unwrap();
    // The same text is a different key for another kind of credential.
    let client = CredentialKey::Client("https://r.example/mcp".into());
    store.save(&client, &Credential::new("three")).unwrap();
    let issuer = CredentialKey::Issuer("https://r.example/mcp".into());
    store.save(&issuer, &Credential::new("four")).unwrap();
    assert_eq!(kept(&store, &issuer).as_deref(), Some("four"));
    let again = FileStore::new(store.path());
    assert_eq!(kept(&again, &key).as_deref(), Some("two"));
    again.remove(&key).unwrap();
    assert_eq!(kept(&store, &key), None);
    assert_eq!(kept(&store, &client).as_deref(), Some("three"));
}

#[cfg(unix)]
#[test]
fn the_file_and_its_folder_are_the_owners_alone() {
    // Rule: [AUTHC-046] [AUTHC-062].
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    let folder = Folder::new("modes");
    let store = store(&folder);
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    // A leftover file does not pass its mode on.
    fs::create_dir_all(folder.path()).unwrap();
    store.save(&tokens("a"), &Credential::new("b")).unwrap();
    let left = sibling(store.path(), ".new");
    fs::write(&left, "left").unwrap();
    fs::set_permissions(&left, fs::Permissions::from_mode(0o666)).unwrap();
    store.save(&tokens("a"), &Credential::new("c")).unwrap();
    assert_eq!(mode(store.path()), 0o600);
    assert_eq!(mode(&sibling(store.path(), ".lock")), 0o600);
    assert_eq!(mode(store.path().parent().unwrap()), 0o700);
    assert!(!left.exists());
}

#[cfg(unix)]
#[test]
fn a_file_that_others_can_read_is_refused() {
    // Rule: [AUTHC-046] [AUTHC-062].
    use std::os::unix::fs::PermissionsExt;

    let folder = Folder::new("exposed");
    let store = store(&folder);
    store.save(&tokens("a"), &Credential::new("secret")).unwrap();
    for mode in [0o640, 0o604, 0o622] {
        fs::set_permissions(store.path(), fs::Permissions::from_mode(mode)).unwrap();
        let loaded = store.load(&tokens("a"));
        assert!(matches!(loaded, Err(PrivateFileError::Exposed { .. })), "{mode:o}");
        let saved = store.save(&tokens("a"), &Credential::new("other"));
        assert!(matches!(saved, Err(PrivateFileError::Exposed { .. })), "{mode:o}");
    }
    fs::set_permissions(store.path(), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(kept(&store, &tokens("a")).as_deref(), Some("secret"));
}

#[cfg(unix)]
#[test]
fn a_path_that_is_not_a_regular_file_is_refused() {
    let folder = Folder::new("pipe");
    let store = store(&folder);
    private_file::create_parent(store.path()).unwrap();
    let made = std::process::Command::new("mkfifo").arg("-m600").arg(store.path()).status();
    assert!(made.unwrap().success());
    let (sender, receiver) = std::sync::mpsc::channel();
    let reader = store.clone();
    thread::spawn(move || sender.send(reader.load(&tokens("a")).map(drop)));
    let loaded = receiver.recv_timeout(Duration::from_secs(10)).expect("no wait");
    assert!(matches!(loaded, Err(PrivateFileError::System { .. })), "{loaded:?}");
    assert!(store.path().exists());
}

#[cfg(unix)]
#[test]
fn a_symlink_in_place_of_the_lock_is_not_followed() {
    // Rule: [AUTHC-046].
    let folder = Folder::new("link");
    let store = store(&folder);
    private_file::create_parent(store.path()).unwrap();
    let elsewhere = folder.path().join("elsewhere");
    std::os::unix::fs::symlink(&elsewhere, sibling(store.path(), ".lock")).unwrap();
    let saved = store.save(&tokens("a"), &Credential::new("b"));
    assert!(matches!(saved, Err(PrivateFileError::Untrusted { .. })), "{saved:?}");
    assert!(!elsewhere.exists());
}

/// Returns why a store does not trust its file, both on reading and writing.
#[cfg(unix)]
fn distrust(store: &FileStore) -> String {
    let untrusted = |error: PrivateFileError| match error {
        PrivateFileError::Untrusted { reason, .. } => reason,
        other => panic!("{other}"),
    };
    let loaded = untrusted(store.load(&tokens("a")).expect_err("not trusted"));
    let saved = store.save(&tokens("a"), &Credential::new("new"));
    assert_eq!(untrusted(saved.expect_err("not trusted")), loaded);
    loaded
}

#[cfg(unix)]
#[test]
fn a_symlink_in_place_of_the_file_is_not_followed() {
    // Rule: [AUTHC-046].
    let folder = Folder::new("file-link");
    let store = store(&folder);
    store.save(&tokens("a"), &Credential::new("secret")).unwrap();
    let elsewhere = folder.path().join("elsewhere");
    fs::rename(store.path(), &elsewhere).unwrap();
    let before = fs::read(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, store.path()).unwrap();
    assert_eq!(distrust(&store), UntrustedPath::Link.to_string());
    assert_eq!(fs::read(&elsewhere).unwrap(), before);
    assert!(fs::symlink_metadata(store.path()).unwrap().is_symlink());
    // A dangling link is not followed either.
    fs::remove_file(&elsewhere).unwrap();
    assert_eq!(distrust(&store), UntrustedPath::Link.to_string());
    assert!(!elsewhere.exists());
}

#[cfg(unix)]
#[test]
fn a_symlink_in_place_of_the_new_file_is_not_followed() {
    // Rule: [AUTHC-046].
    let folder = Folder::new("new-link");
    let store = store(&folder);
    private_file::create_parent(store.path()).unwrap();
    let elsewhere = folder.path().join("elsewhere");
    fs::write(&elsewhere, "mine").unwrap();
    std::os::unix::fs::symlink(&elsewhere, sibling(store.path(), ".new")).unwrap();
    store.save(&tokens("a"), &Credential::new("secret")).unwrap();
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "mine");
    assert!(!fs::symlink_metadata(store.path()).unwrap().is_symlink());
    assert_eq!(kept(&store, &tokens("a")).as_deref(), Some("secret"));
}

#[cfg(unix)]
#[test]
fn a_folder_that_others_can_write_to_is_refused() {
    // Rule: [AUTHC-046].
    use std::os::unix::fs::PermissionsExt;

    let folder = Folder::new("folder-mode");
    let store = store(&folder);
    store.save(&tokens("a"), &Credential::new("secret")).unwrap();
    let inner = store.path().parent().unwrap().to_path_buf();
    let set = |mode| fs::set_permissions(&inner, fs::Permissions::from_mode(mode)).unwrap();
    for mode in [0o770, 0o702, 0o777] {
        set(mode);
        let reason = UntrustedPath::FolderWritable(inner.clone()).to_string();
        assert_eq!(distrust(&store), reason, "{mode:o}");
    }
    for mode in [0o700, 0o755, 0o1777] {
        set(mode);
        assert_eq!(kept(&store, &tokens("a")).as_deref(), Some("secret"), "{mode:o}");
    }
}

#[cfg(unix)]
#[test]
fn files_and_folders_of_other_users_are_refused() {
    // Rule: [AUTHC-046].
    use std::os::unix::fs::{MetadataExt, chown};

    const OTHER: u32 = 54_321;
    let folder = Folder::new("owner");
    let store = store(&folder);
    store.save(&tokens("a"), &Credential::new("secret")).unwrap();
    let user = fs::metadata(store.path()).unwrap().uid();
    if chown(store.path(), Some(OTHER), None).is_err() {
        // Only root can change the owner of a file. The check itself is tested in `private_file`.
        return;
    }
    assert_eq!(distrust(&store), UntrustedPath::Owner { owner: OTHER, user }.to_string());
    chown(store.path(), Some(user), None).unwrap();
    let lock = sibling(store.path(), ".lock");
    chown(&lock, Some(OTHER), None).unwrap();
    let saved = store.save(&tokens("a"), &Credential::new("new"));
    let Err(PrivateFileError::Untrusted { path, .. }) = saved else { panic!("{saved:?}") };
    assert_eq!(path, lock);
    chown(&lock, Some(user), None).unwrap();
    let inner = store.path().parent().unwrap();
    chown(inner, Some(OTHER), None).unwrap();
    let reason = UntrustedPath::FolderOwner { folder: inner.to_path_buf(), owner: OTHER };
    assert_eq!(distrust(&store), reason.to_string());
    chown(inner, Some(user), None).unwrap();
    assert_eq!(kept(&store, &tokens("a")).as_deref(), Some("secret"));
}

/// Unparks a thread.
struct Unpark(thread::Thread);

impl std::task::Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[test]
fn waiting_for_the_lock_does_not_block_other_tasks() {
    use std::pin::pin;
    use std::task::{Context, Poll};

    let folder = Folder::new("held");
    let reports = Arc::new(std::sync::Mutex::new(Vec::new()));
    let failed = Arc::clone(&reports);
    let store = store(&folder)
        .on_failure(move |error| failed.lock().expect("a list").push(error.to_string()));
    private_file::create_parent(store.path()).expect("a folder");
    let held = Lock::acquire(&sibling(store.path(), ".lock")).expect("the lock");
    let key = tokens("a");
    let mut save = pin!(CredentialStore::save(&store, &key, Credential::new("secret")));
    let waker = Arc::new(Unpark(thread::current())).into();
    let mut context = Context::from_waker(&waker);
    // The lock is held until this thread releases it below.
    assert!(save.as_mut().poll(&mut context).is_pending());
    drop(held);
    while save.as_mut().poll(&mut context) == Poll::Pending {
        thread::park();
    }
    assert_eq!(*reports.lock().expect("a list"), [""; 0]);
    assert_eq!(kept(&store, &key).as_deref(), Some("secret"));
}

/// Polls a future on this thread until it is ready.
fn wait<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let waker = Arc::new(Unpark(thread::current())).into();
    loop {
        match future.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
            std::task::Poll::Ready(output) => return output,
            std::task::Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn a_renewal_waits_for_that_of_another_process_while_others_read_and_save() {
    let folder = Folder::new("renewal");
    let (store, key) = (store(&folder), tokens("https://r.example/mcp"));
    let held = wait(CredentialStore::lock(&store, &key)).unwrap();
    // Another process, or another store in this one: locks belong to open files.
    let other = FileStore::new(store.path());
    let (renewing, waiting) = (other.clone(), key.clone());
    let renewal = thread::spawn(move || {
        let _lock = wait(CredentialStore::lock(&renewing, &waiting)).unwrap();
        kept(&renewing, &waiting)
    });
    other.save(&key, &Credential::new("two")).unwrap();
    assert_eq!(kept(&store, &key).as_deref(), Some("two"));
    assert!(other.lock_key(&key, || false).is_err());
    store.save(&key, &Credential::new("three")).unwrap();
    drop(held);
    assert_eq!(renewal.join().unwrap().as_deref(), Some("three"));
    // Most other credentials have a lock of their own, in a bounded number of files.
    let buckets: std::collections::BTreeSet<_> =
        (0..500).map(|it| bucket(&name(&tokens(&it.to_string())).unwrap())).collect();
    assert_eq!(buckets, (0..RENEWAL_LOCKS).collect());
}

#[test]
fn a_thread_stops_waiting_when_its_renewal_is_cancelled() {
    use std::task::{Context, Waker};

    let folder = Folder::new("cancelled");
    let (done, ended) = std::sync::mpsc::channel();
    let store = store(&folder).spawner(move |job| {
        let done = done.clone();
        thread::spawn(move || {
            job();
            let _ = done.send(());
        });
    });
    let key = tokens("a");
    let _held = store.lock_key(&key, || true).unwrap();
    {
        let mut lock = std::pin::pin!(CredentialStore::lock(&store, &key));
        assert!(lock.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    // Long before the timeout.
    ended.recv_timeout(RENEWAL_TIMEOUT / 5).unwrap();
}

#[test]
fn a_call_without_a_spawner_fails() {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    let folder = Folder::new("nowhere");
    let store = store(&folder).spawner(drop);
    let key = tokens("a");
    let mut load = pin!(CredentialStore::load(&store, &key));
    let Poll::Ready(loaded) = load.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("the future is pending");
    };
    assert!(loaded.expect_err("no thread").to_string().contains("no thread"));
}

#[test]
fn a_damaged_file_is_reported_once_and_kept() {
    let folder = Folder::new("damaged");
    let store = store(&folder);
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
        assert!(matches!(error, PrivateFileError::Damaged { .. }), "{error}");
        assert!(!format!("{error} {error:?}").contains("sec\""), "{error:?}");
        let aside = sibling(store.path(), &format!(".damaged-{number}"));
        assert!(error.to_string().contains(&*aside.to_string_lossy()), "{error}");
        assert_eq!(fs::read_to_string(aside).unwrap(), text);
        assert_eq!(kept(&store, &tokens("a")), None);
    }
}

#[test]
fn the_file_of_a_newer_program_stays() {
    let folder = Folder::new("newer");
    let store = store(&folder);
    private_file::create_parent(store.path()).unwrap();
    let text = br#"{"version":2,"vault":[]}"#;
    private_file::replace(store.path(), text).unwrap();
    let saved = store.save(&tokens("a"), &Credential::new("b"));
    assert!(matches!(saved, Err(PrivateFileError::Newer { .. })));
    assert_eq!(fs::read(store.path()).unwrap(), text);
}

#[test]
fn writers_at_the_same_time_lose_nothing() {
    const WRITERS: usize = 4;
    const WRITES: usize = 10;
    let folder = Folder::new("writers");
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            // Each writer has its own store, like a separate process.
            let store = store(&folder);
            scope.spawn(move || {
                for write in 0..WRITES {
                    let key = tokens(&format!("{writer}-{write}"));
                    store.save(&key, &Credential::new("x")).unwrap();
                }
            });
        }
    });
    let store = store(&folder);
    for writer in 0..WRITERS {
        for write in 0..WRITES {
            assert!(kept(&store, &tokens(&format!("{writer}-{write}"))).is_some());
        }
    }
}

#[test]
fn processes_at_the_same_time_lose_nothing() {
    const NAME: &str = "client::file_store::tests::processes_at_the_same_time_lose_nothing";
    const PATH: &str = "MCP_AUTH_TEST_STORE";
    const NUMBER: &str = "MCP_AUTH_TEST_NUMBER";
    if let (Ok(path), Ok(number)) = (std::env::var(PATH), std::env::var(NUMBER)) {
        // In the child process.
        let store = FileStore::new(path);
        for write in 0..10 {
            store.save(&tokens(&format!("{number}-{write}")), &Credential::new("x")).unwrap();
        }
        return;
    }
    let folder = Folder::new("processes");
    let store = store(&folder);
    let processes: Vec<_> = (0..3)
        .map(|number| {
            std::process::Command::new(std::env::current_exe().unwrap())
                .args([NAME, "--exact"])
                .env(PATH, store.path())
                .env(NUMBER, number.to_string())
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut process in processes {
        assert!(process.wait().unwrap().success());
    }
    for number in 0..3 {
        for write in 0..10 {
            assert!(kept(&store, &tokens(&format!("{number}-{write}"))).is_some());
        }
    }
}

#[test]
fn a_failure_that_the_core_ignores_is_reported() {
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Waker};

    let folder = Folder::new("reported");
    let reports = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&reports);
    // A file takes the place of the folder.
    fs::create_dir_all(folder.path()).unwrap();
    fs::write(folder.path().join("inner"), "").unwrap();
    let store = store(&folder).spawner(|job| job()).on_failure(move |error| {
        assert!(matches!(error, PrivateFileError::System { .. }), "{error}");
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let key = tokens("a");
    let mut context = Context::from_waker(Waker::noop());
    let mut save = pin!(CredentialStore::save(&store, &key, Credential::new("secret")));
    assert!(save.as_mut().poll(&mut context).is_ready());
    let mut remove = pin!(CredentialStore::remove(&store, &key));
    assert!(remove.as_mut().poll(&mut context).is_ready());
    assert_eq!(reports.load(Ordering::Relaxed), 2);
}
