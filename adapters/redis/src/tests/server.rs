use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A server process, which ends with this value.
pub(super) struct RedisServer {
    process: Child,
    pub(super) port: u16,
    folder: PathBuf,
    arguments: Vec<String>,
}

impl RedisServer {
    /// Starts a server on a free port of the loopback interface. Returns `None` if it is not
    /// installed and the test is skipped.
    pub(super) fn start(arguments: &[&str]) -> Option<Self> {
        test_programs::find(&["redis-server"])?;
        test_programs::find(&["redis-cli"])?;
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("mcp-redis-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let port = test_programs::free_port();
        let arguments: Vec<String> = arguments.iter().map(|&it| it.to_owned()).collect();
        let process = run(port, &folder, &arguments);
        let server = Self { process, port, folder, arguments };
        server.wait();
        Some(server)
    }

    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Ends the process without warning.
    pub(super) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Starts the process again, without its data.
    pub(super) fn restart(&mut self) {
        self.process = run(self.port, &self.folder, &self.arguments);
        self.wait();
    }

    /// Stops the process, or lets it continue.
    pub(super) fn signal(&self, name: &str) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    /// Runs a command with `redis-cli`, and returns its output.
    pub(super) fn cli(&self, arguments: &[&str]) -> String {
        let port = self.port.to_string();
        let output =
            Command::new("redis-cli").args(["-p", &port]).args(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Waits until the server answers.
    fn wait(&self) {
        for _ in 0..400 {
            if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) {
                let mut reply = [0; 64];
                stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
                // A server that requires a password answers with an error, and one for TLS not at
                // all.
                if stream.write_all(b"PING\r\n").is_ok()
                    && stream.read(&mut reply).is_ok_and(|length| length > 0)
                {
                    return;
                }
                if self.arguments.iter().any(|it| it == "--tls-port") {
                    return;
                }
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("redis-server does not answer");
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ended = self.process.kill();
        let _waited = self.process.wait();
        let _removed = std::fs::remove_dir_all(&self.folder);
    }
}

fn run(port: u16, folder: &Path, arguments: &[String]) -> Child {
    let is_tls = arguments.iter().any(|it| it == "--tls-port");
    let (plain, port) = (if is_tls { "0".into() } else { port.to_string() }, port.to_string());
    let arguments = arguments.iter().map(|it| if it == "PORT" { &port } else { it });
    Command::new("redis-server")
        .args(["--port", &plain, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
        .arg("--dir")
        .arg(folder)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}
