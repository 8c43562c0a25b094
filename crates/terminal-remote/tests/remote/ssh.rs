//! A real sshd on the loopback device, with keys, port and configuration of its own.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    fs,
    io::{BufRead as _, BufReader},
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;
use terminal::{SessionStatus, Signal, StateKind, WaitReason};
use testkit::{
    leaks::{alone, alone_unguarded},
    wait::{shown, wait_until},
};

use crate::{
    conformance::{BOUNDS, conforms},
    support::{Bench, FAR, assert_prompt, assert_ready, children, kill, python},
};

/// The server, and what a client needs.
struct Sshd {
    folder: TempDir,
    port: u16,
    user: String,
    /// What the server runs on.
    machine: Child,
    server: u32,
}

fn run(program: &str, args: &[&str]) -> String {
    let done = Command::new(program).args(args).stderr(Stdio::inherit()).output().unwrap();
    assert!(done.status.success(), "{program} {args:?}");
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

fn key(path: &Path) {
    run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", path.to_str().unwrap()]);
}

impl Sshd {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["host_key", "user_key", "wrong_key"] {
            key(&path(name));
        }
        fs::copy(path("user_key.pub"), path("authorized_keys")).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let host_key = fs::read_to_string(path("host_key.pub")).unwrap();
        let wrong_key = fs::read_to_string(path("wrong_key.pub")).unwrap();
        fs::write(path("known_hosts"), format!("[127.0.0.1]:{port} {host_key}")).unwrap();
        fs::write(path("other_hosts"), format!("[127.0.0.1]:{port} {wrong_key}")).unwrap();
        let shown = |name: &str| path(name).display().to_string();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\n\
             PidFile none\nUsePAM no\nStrictModes no\nPasswordAuthentication no\n\
             KbdInteractiveAuthentication no\nPermitRootLogin yes\nMaxStartups 100\nPrintMotd no\n",
            shown("host_key"),
            shown("authorized_keys")
        );
        fs::write(path("sshd_config"), config).unwrap();
        // Where it keeps nothing, and without which it does not start.
        fs::create_dir_all("/run/sshd").ok();
        let mut machine = Command::new(python())
            .args(["-IS", FAR, "run", "/usr/sbin/sshd", "-D", "-e", "-f", &shown("sshd_config")])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(path("log")).unwrap())
            .spawn()
            .unwrap();
        let mut pid = String::new();
        BufReader::new(machine.stdout.take().unwrap()).read_line(&mut pid).unwrap();
        let server = pid.trim().parse().unwrap();
        wait_until("sshd listens", || TcpStream::connect(("127.0.0.1", port)).is_ok()).await;
        Self { folder, port, user: run("id", &["-un"]), machine, server }
    }

    /// Runs `test` on a host with this row.
    async fn bench(&self, row: &str, test: impl AsyncFnOnce(&Bench)) {
        let bench = Bench::boot(row).await;
        test(&bench).await;
        bench.end().await;
        self.idle().await;
    }

    /// Waits until nothing but the server runs on its machine.
    async fn idle(&self) {
        let idle =
            || children(self.machine.id()) == [self.server] && children(self.server).is_empty();
        wait_until("the far machine is idle", idle).await;
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `ssh` with the right key and host key unless these options say otherwise.
    fn ssh(&self, options: &str) -> String {
        let Self { port, user, .. } = self;
        let (known, key) = (self.path("known_hosts"), self.path("user_key"));
        format!(
            "[ssh, -F, /dev/null, {options}, -p{port}, -o, IdentitiesOnly=yes, \
             -o, UserKnownHostsFile={}, -o, StrictHostKeyChecking=yes, -i, {}, {user}@127.0.0.1]",
            known.display(),
            key.display()
        )
    }

    fn row(&self, options: &str, keys: &str) -> String {
        let argv = self.ssh(&format!("-tt, {options}"));
        let control = self.ssh("-o, BatchMode=yes");
        format!(
            "- name: terminal-remote\n  config: {{ argv: {argv}, controlArgv: {control}, {keys} }}"
        )
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        kill(self.server);
        self.machine.wait().unwrap();
    }
}

/// The server's process of each connection.
fn connections(server: u32) -> Vec<u32> {
    let mut all = children(server);
    let mut next = 0;
    while next < all.len() {
        let below = children(all[next]);
        let is_sshd = |pid: &u32| {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            name.starts_with("sshd")
        };
        all.extend(below.into_iter().filter(is_sshd));
        next += 1;
    }
    all
}

/// Nothing here waits for silence, and a second connection may take its time.
const QUICK: &str = "idleSilenceMs: 20000, disposeGraceMs: 300";

/// Runs `test` with a host behind an sshd, alone in this process.
fn behind_ssh(options: &str, test: impl AsyncFnOnce(&Sshd, &Bench)) {
    alone(async {
        let sshd = Sshd::start().await;
        let row = sshd.row(options, QUICK);
        sshd.bench(&row, async |bench| test(&sshd, bench).await).await;
    });
}

#[test]
#[ignore = "needs sshd"]
fn a_shell_behind_ssh_conforms() {
    alone_unguarded(async {
        let sshd = Sshd::start().await;
        conforms(&sshd.row("-q", &format!("disposeGraceMs: 300, {BOUNDS}"))).await;
        sshd.idle().await;
    });
}

#[test]
#[ignore = "needs sshd"]
fn a_session_behind_ssh() {
    behind_ssh("-q", async |_, bench| {
        let shell = bench.open().await;
        assert_eq!(shell.spawned.motd, "dsh> ");
        assert_eq!(shell.run("echo hi", 0).await, "hi\n");
        let moved = shell.send("cd /usr; (exit 7)").await;
        assert_prompt(&moved, Some(7));
        assert_eq!(moved.last_command.unwrap().cwd.as_deref(), Some(Path::new("/usr")));
        let connection = shell.run("echo $SSH_CONNECTION", 0).await;
        assert!(connection.contains("127.0.0.1"), "{connection}");
        assert_ready(&shell.send("bash --norc -i").await, StateKind::LineEditor);
        assert_prompt(&shell.send("exit").await, Some(0));
        let operation = shell.start("echo begun; sleep 1000", true);
        shown(&*operation, "begun\n").await;
        while !operation.is_settled() {
            let terminals = bench.terminals();
            terminals.signal(&bench.agent, &shell.id, Signal::Terminate).await.unwrap();
        }
        assert_prompt(&operation.done().await.unwrap(), Some(143));
        shell.run("(trap '' HUP TERM; exec setsid sleep 1000) >/dev/null 2>&1 &", 0).await;
        assert!(shell.close().await.unwrap());
        assert_eq!(bench.processes(), []);
    });
}

#[test]
#[ignore = "needs sshd"]
fn a_connection_that_drops_in_the_middle_of_a_send() {
    behind_ssh("-a", async |sshd, bench| {
        let shell = bench.open().await;
        shell.run("nohup setsid sleep 1000 >/dev/null 2>&1 &", 0).await;
        let operation = shell.start("trap '' HUP; echo begun; sleep 1000", true);
        shown(&*operation, "begun\n").await;
        for connection in connections(sshd.server) {
            kill(connection);
        }
        let outcome = operation.done().await.unwrap();
        assert_eq!(outcome.wait_reason, WaitReason::SessionExit, "{outcome:#?}");
        let hung_up = SessionStatus::Exited { exit_code: None, signal: Some("SIGHUP".to_owned()) };
        assert_eq!(outcome.session_status, hung_up);
        assert!(outcome.viewport.contains("closed by remote host"), "{outcome:#?}");
        wait_until("the far side has ended", || bench.processes().is_empty()).await;
        assert!(shell.close().await.unwrap());
    });
}

/// What the launcher refuses at the start: told with its own words, and nothing is left.
#[test]
#[ignore = "needs sshd"]
fn what_ssh_refuses_is_told() {
    alone(async {
        let sshd = Sshd::start().await;
        let shown = |name: &str| sshd.path(name).display().to_string();
        let other_hosts = format!("-o, UserKnownHostsFile={}", shown("other_hosts"));
        let row = |options: &str| sshd.row(options, QUICK);
        let wrong_key = row("-a").replace(&shown("user_key"), &shown("wrong_key"));
        let closed_port = row("-a").replace(&format!("-p{}", sshd.port), "-p1");
        for (row, told) in [
            (row(&other_hosts), "Host key verification failed."),
            (wrong_key, "Permission denied (publickey)"),
            (closed_port, "Connection refused"),
        ] {
            sshd.bench(&row, async |bench| {
                let text = bench.refused(None, "SHELL_START_FAILED").await;
                assert!(text.contains("exited with status 255"), "{text}");
                assert!(text.contains(told) && text.contains("Run it by hand"), "{text}");
            })
            .await;
        }
        let asks = row("-o, UserKnownHostsFile=/dev/null, -o, StrictHostKeyChecking=ask");
        sshd.bench(&asks, async |bench| {
            let text = bench.refused(None, "SHELL_START_FAILED").await;
            assert!(text.contains("asks what nobody here can answer"), "{text}");
            assert!(text.contains("Are you sure you want to continue connecting"), "{text}");
        })
        .await;
    });
}
