//! A real shell in each mode: what it changes of the world, tried in every way at hand. The same
//! attempts are played without a sandbox, where each must succeed.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a helper of a test fails it as the test would")]

use std::{
    fs,
    net::{TcpListener, UdpSocket},
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use agents::{Agent, AgentSpec, Agents};
use dsh_core::Cancel;
use sandbox_bubblewrap::Bubblewrap;
use sandbox_landlock::Landlock;
use sandbox_policy::{Network, PolicyError, SandboxMode, SandboxPolicy, SandboxProvider};
use tempfile::TempDir;
use terminal::{
    Evidence, SendOutcome, SendRequest, SpawnRequest, StateKind, TerminalError, Terminals,
    WaitReason,
};
use testkit::{
    TestHost,
    again::{as_an_ordinary_user, assert_passes},
    alone,
    leaks::{alone_unguarded, processes_with_env},
};

// Only what is mentioned is linked.
use terminal_bash as _;

/// What every provider has to show.
struct Provider {
    enforces: &'static dyn SandboxProvider,
    /// The network that it can confine.
    network: Network,
}

const LANDLOCK: Provider = Provider { enforces: &Landlock, network: Network::NoTcp };
const BUBBLEWRAP: Provider = Provider { enforces: &Bubblewrap, network: Network::None };

macro_rules! with_each_provider {
    ($($case:ident),* $(,)?) => {
        mod landlock {
            $(#[test] fn $case() { super::$case(&super::LANDLOCK); })*
        }
        mod bubblewrap {
            $(#[test] #[ignore = "needs bwrap"] fn $case() { super::$case(&super::BUBBLEWRAP); })*
        }
    };
}

with_each_provider! {
    nothing_outside_is_written,
    the_workspace_and_temporary_folders_are_as_usual,
    read_only_reads_and_runs,
    readiness_and_close_are_as_without,
    a_mode_does_not_change_under_a_session,
    the_network_is_what_the_policy_says,
    processes_outside_are_out_of_reach,
    what_cannot_be_confined_is_refused_before_anything_starts,
    the_hosts_own_folder_is_not_written,
}

/// A host in a mode, one agent, its shell, and folders inside and outside.
struct Confined {
    host: TestHost,
    agent: Arc<Agent>,
    id: String,
    /// Stands for the temporary folders.
    temporary: TempDir,
    outside: TempDir,
}

impl Confined {
    async fn boot(provider: &Provider, mode: SandboxMode, network: Network) -> Self {
        let (temporary, outside) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let rows = format!(
            "- name: terminal\n- name: terminal-bash\n  config: {{ timeoutMs: 20000 }}\n\
             - name: {}\n- name: sandbox-policy\n  config: {{ mode: {}, network: {}, \
             writableFolders: ['{}'] }}\n",
            provider.enforces.name(),
            mode.name(),
            network.name(),
            temporary.path().display(),
        );
        let host = TestHost::boot(&rows).await;
        let agent = host.agent(&format!("agent-{}", std::process::id()));
        let mut confined = Self { host, agent, id: String::new(), temporary, outside };
        confined.id = confined.open().await.unwrap();
        confined
    }

    async fn open(&self) -> Result<String, TerminalError> {
        let request = SpawnRequest { kind: "shell".to_owned(), ..SpawnRequest::default() };
        let terminals = self.host.service::<Terminals>();
        let spawned = terminals.spawn(&self.agent, request, &Cancel::new()).await?;
        Ok(spawned.session.session_id.to_string())
    }

    /// Types a line and waits. `$W`, `$T` and `$O` are workspace, temporary folder and outside.
    async fn send(&self, text: &str) -> SendOutcome {
        let request = SendRequest {
            text: self.place(text),
            submit: true,
            background: false,
            cancel: Cancel::new(),
        };
        let terminals = self.host.service::<Terminals>();
        terminals.start_send(&self.agent, &self.id, request).unwrap().done().await.unwrap()
    }

    fn place(&self, text: &str) -> String {
        text.replace("$W", &self.host.workspace().display().to_string())
            .replace("$T", &self.temporary.path().display().to_string())
            .replace("$O", &self.outside.path().display().to_string())
            .replace("$HOST", &std::process::id().to_string())
    }

    /// The status of a command that comes back to the prompt.
    async fn status(&self, command: &str) -> i32 {
        let outcome = self.send(command).await;
        let state = outcome.state.as_ref().unwrap();
        assert_eq!(
            (outcome.wait_reason, state.kind, state.evidence),
            (WaitReason::StdinRead, StateKind::Prompt, Evidence::Exact),
            "{outcome:#?}"
        );
        outcome.last_command.unwrap().exit_code.unwrap()
    }

    async fn works(&self, command: &str) {
        assert_eq!(self.status(command).await, 0, "{}", self.place(command));
    }

    async fn end(self) {
        let terminals = self.host.service::<Terminals>();
        terminals.kill(&self.agent, &self.id, "test").await.unwrap();
        // No waiting: it is true the moment that the close returns.
        assert_eq!(processes_with_env("DSH_SESSION_ID", self.agent.id()), []);
        self.host.dispose().await.unwrap();
    }
}

/// Everything below a folder that a change would show in: names, kinds, links, contents.
fn picture(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let kind = fs::symlink_metadata(&path).unwrap().file_type();
        let content =
            if kind.is_file() { fs::read_to_string(&path).unwrap() } else { format!("{kind:?}") };
        if kind.is_dir() {
            all.extend(picture(&path));
        }
        all.push((path, content));
    }
    all.sort();
    all
}

/// `outside` as each attempt finds it.
fn lay_out(outside: &Path) {
    for entry in fs::read_dir(outside).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
    }
    fs::write(outside.join("kept"), "kept\n").unwrap();
    fs::create_dir(outside.join("folder")).unwrap();
}

/// What changes `$O` where nothing confines. What lies in `$W` is ready in every mode.
const ATTEMPTS: [&str; 29] = [
    "echo x > $O/new",
    "echo x >> $O/kept",
    ": > $O/kept",
    "truncate -s 0 $O/kept",
    "rm -f $O/kept",
    "rmdir $O/folder",
    "mv $O/kept $O/moved",
    "mv $O/kept $O/folder/",
    "mkdir $O/made",
    "mkfifo $O/pipe",
    "ln -s kept $O/link",
    "ln $O/kept $O/hard",
    "cp $W/source $O/copied",
    "dd if=/dev/zero of=$O/kept bs=1 count=8 conv=notrunc status=none",
    "python3 -c 'open(\"$O/new\", \"w\").write(\"x\")'",
    "python3 -c 'import os; os.truncate(\"$O/kept\", 1)'",
    "python3 -c 'import os; os.rename(\"$O/kept\", \"$O/moved\")'",
    "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"$O/socket\")'",
    // Names inside for what is outside.
    "echo x > $W/link-to-kept",
    "echo x > $W/link-to-outside/new",
    "echo x > $W/../$(basename $O)/new",
    // Descriptors, opened for reading, opened again.
    "exec 9< $O/kept; echo x > /proc/self/fd/9",
    "exec 9< $O; echo x > /proc/self/fd/9/new",
    "exec 9< $O; echo x > /dev/fd/9/new",
    // Who leaves session, parent, environment.
    "setsid -w bash -c 'echo x > $O/new'",
    "nohup bash -c 'echo x > $O/new' 2> /dev/null",
    "env -i bash -c 'echo x > $O/new'",
    "python3 -c 'import os; os.fork() and os._exit(os.waitstatus_to_exitcode(os.wait()[1])); os.setsid(); os.fork() and os._exit(os.waitstatus_to_exitcode(os.wait()[1])); open(\"$O/new\", \"w\")'",
    "script -qec 'echo x > $O/new' /dev/null",
];

/// What would change `$O` by a detour that may be closed anyway, such as to other users than root.
const DETOURS: [&str; 7] = [
    "ln $O/kept $W/hard && echo x > $W/hard",
    "mv $O/kept $W/taken",
    "mv $W/source $O/moved",
    "echo x > /proc/$HOST/root$O/new",
    "echo x > /proc/$HOST/cwd/../../../../../..$O/new",
    "unshare -rm bash -c 'mount --bind $O $W/folder && echo x > $W/folder/new'",
    "mount -t tmpfs none $O",
];

fn prepare(confined: &Confined) {
    let (workspace, outside) = (confined.host.workspace(), confined.outside.path());
    fs::write(workspace.join("source"), "x\n").unwrap();
    fs::create_dir(workspace.join("folder")).unwrap();
    std::os::unix::fs::symlink(outside.join("kept"), workspace.join("link-to-kept")).unwrap();
    std::os::unix::fs::symlink(outside, workspace.join("link-to-outside")).unwrap();
    lay_out(outside);
}

fn nothing_outside_is_written(provider: &Provider) {
    for mode in [SandboxMode::WorkspaceWrite, SandboxMode::ReadOnly] {
        alone(async {
            let confined = Confined::boot(provider, mode, Network::Full).await;
            prepare(&confined);
            let before = picture(confined.outside.path());
            for attempt in ATTEMPTS.iter().chain(&DETOURS) {
                let status = confined.status(attempt).await;
                assert_ne!(status, 0, "{}: {attempt}", mode.name());
                assert_eq!(picture(confined.outside.path()), before, "{}: {attempt}", mode.name());
            }
            confined.end().await;
        });
    }
}

/// Whom no right of root's could help or hinder.
#[test]
#[ignore = "needs root"]
fn an_ordinary_user_writes_nothing_outside() {
    let folder = TempDir::new().unwrap();
    let name = "landlock::nothing_outside_is_written";
    // What it starts is nothing that another test has left over.
    alone_unguarded(async { assert_passes(&mut as_an_ordinary_user(folder.path(), name)) });
}

/// Without a sandbox each of them is a change: the test above can fail.
#[test]
fn every_attempt_changes_something_where_nothing_confines() {
    alone(async {
        let confined =
            Confined::boot(&LANDLOCK, SandboxMode::DangerFullAccess, Network::Full).await;
        prepare(&confined);
        let before = picture(confined.outside.path());
        for attempt in ATTEMPTS {
            confined.works(attempt).await;
            assert_ne!(picture(confined.outside.path()), before, "{attempt}");
            lay_out(confined.outside.path());
        }
        confined.end().await;
    });
}

fn the_workspace_and_temporary_folders_are_as_usual(provider: &Provider) {
    alone(async {
        let confined = Confined::boot(provider, SandboxMode::WorkspaceWrite, Network::Full).await;
        for command in [
            "echo x > new && echo y >> $T/new && [ \"$(cat new)\" = x ]",
            "mkdir -p a/b $T/a && mv new a/b/ && mv a/b a/c && ln a/c/new hard && ln -s hard soft",
            "mv a $T/moved && mv $T/moved back && rm -r back && truncate -s 0 hard && mkfifo pipe",
            "python3 -c 'import tempfile; tempfile.TemporaryFile(dir=\"$T\").write(b\"x\")'",
            // A build.
            "echo 'int main(void) { return 0; }' > main.c && TMPDIR=$T cc -o main main.c && ./main",
            "echo 'def f(): pass' > m.py && python3 -m py_compile m.py && python3 -c 'import m'",
            "chmod 600 m.py && touch -d yesterday m.py",
        ] {
            confined.works(command).await;
        }
        ordinary_work(&confined).await;
        confined.end().await;
    });
}

fn read_only_reads_and_runs(provider: &Provider) {
    alone(async {
        let confined = Confined::boot(provider, SandboxMode::ReadOnly, Network::Full).await;
        let (workspace, temporary) = (confined.host.workspace(), confined.temporary.path());
        fs::write(workspace.join("file"), "content\n").unwrap();
        for command in ["echo x > new", "echo x > $T/new", ": > file", "rm -f file"] {
            assert_ne!(confined.status(command).await, 0, "{command}");
        }
        assert_eq!(picture(workspace), [(workspace.join("file"), "content\n".to_owned())]);
        assert_eq!(picture(temporary), []);
        confined.works("[ \"$(cat file)\" = content ] && grep -q cont file").await;
        ordinary_work(&confined).await;
        confined.end().await;
    });
}

/// What needs no file to write to.
async fn ordinary_work(confined: &Confined) {
    for command in [
        "cat /etc/passwd > /dev/null && ls / > /dev/null && : > /dev/null",
        "echo to the terminal > /dev/tty && [ -t 0 ] && tty > /dev/null && stty -a > /dev/null",
        "grep -q ^Name: /proc/self/status && ls /proc/self/fd > /dev/null && ls /dev/shm > /dev/null",
        "script -qec 'test -t 0 && echo inner' /dev/null | grep -q inner",
        "echo 2+2 | python3 -c 'print(eval(input()))' | grep -q 4",
        "cat <<E | wc -l | grep -q 1\nhere\nE",
        "sleep 100 & kill $! && ! wait $!",
    ] {
        confined.works(command).await;
    }
}

/// Everything that is found out about a program is found out about a confined one, and its close ends
/// whatever it started.
fn readiness_and_close_are_as_without(provider: &Provider) {
    alone(async {
        let confined = Confined::boot(provider, SandboxMode::ReadOnly, provider.network).await;
        let kind = |outcome: &SendOutcome| {
            let state = outcome.state.clone().unwrap();
            (outcome.wait_reason, state.kind, state.evidence, state.echo)
        };
        let exact = |kind, echo| (WaitReason::StdinRead, kind, Evidence::Exact, echo);
        let asks = confined.send("read -p 'name? ' x").await;
        assert_eq!(kind(&asks), exact(StateKind::Line, true), "{asks:#?}");
        confined.works("me").await;
        let asks = confined.send("read -s -p 'secret? ' x").await;
        assert_eq!(kind(&asks), exact(StateKind::Password, false), "{asks:#?}");
        confined.works("hidden").await;
        let python = confined.send("python3 -q").await;
        assert_eq!(python.wait_reason, WaitReason::StdinRead, "{python:#?}");
        assert!(python.viewport.ends_with(">>> "), "{python:#?}");
        confined.works("exit()").await;
        confined.works("sleep 0.3").await;
        let terminals = confined.host.service::<Terminals>();
        let sleeping = SendRequest {
            text: "echo begun; sleep 100".to_owned(),
            submit: true,
            background: false,
            cancel: Cancel::new(),
        };
        let operation = terminals.start_send(&confined.agent, &confined.id, sleeping).unwrap();
        let mut follower = operation.subscribe();
        let mut shown = String::new();
        while !shown.contains("begun\n") {
            shown.push_str(&follower.next().await.unwrap().text);
        }
        assert!(operation.cancel("test"));
        let cancelled = operation.done().await.unwrap();
        assert_eq!(cancelled.last_command.unwrap().exit_code, Some(130));
        confined.works("(setsid sleep 999 &) ; (trap '' TERM HUP; sleep 999) & disown").await;
        confined.end().await;
    });
}

fn a_mode_does_not_change_under_a_session(provider: &Provider) {
    alone(async {
        let confined = Confined::boot(provider, SandboxMode::DangerFullAccess, Network::Full).await;
        let policy = confined.host.service::<SandboxPolicy>();
        let refused = policy.set_mode(&confined.agent, SandboxMode::ReadOnly).unwrap_err();
        assert!(matches!(refused, PolicyError::OwnerActive { .. }), "{refused}");
        confined.works("echo x > new").await;
        let terminals = confined.host.service::<Terminals>();
        terminals.kill(&confined.agent, &confined.id, "test").await.unwrap();
        policy.set_mode(&confined.agent, SandboxMode::ReadOnly).unwrap();
        let confined = Confined { id: confined.open().await.unwrap(), ..confined };
        assert_ne!(confined.status("echo x > newer").await, 0);
        confined.end().await;
    });
}

fn the_network_is_what_the_policy_says(provider: &Provider) {
    for network in [provider.network, Network::Full] {
        alone(async {
            let confined = Confined::boot(provider, SandboxMode::ReadOnly, network).await;
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
            udp.set_nonblocking(true).unwrap();
            let port = listener.local_addr().unwrap().port().to_string();
            let udp_port = udp.local_addr().unwrap().port().to_string();
            for (script, fails) in [
                ("s.connect((\"127.0.0.1\", $PORT))", network != Network::Full),
                // With none of the network there is still a loopback interface of its own.
                ("s.bind((\"127.0.0.1\", 0)); s.listen()", network == Network::NoTcp),
                ("s = socket.socket(type=2); s.sendto(b\"x\", (\"127.0.0.1\", $UDP))", false),
            ] {
                let script = script.replace("$PORT", &port).replace("$UDP", &udp_port);
                let command = format!("python3 -c 'import socket; s = socket.socket(); {script}'");
                let status = confined.status(&command).await;
                assert_eq!(status != 0, fails, "{}: {script}", network.name());
            }
            // On loopback, what was sent is there.
            let received = udp.recv(&mut [0; 8]).is_ok();
            assert_eq!(received, network != Network::None, "{}", network.name());
            confined.end().await;
        });
    }
}

fn processes_outside_are_out_of_reach(provider: &Provider) {
    let kernel_confines = provider.enforces.limits().iter().all(|it| !it.contains("signal"));
    alone(async {
        let confined = Confined::boot(provider, SandboxMode::WorkspaceWrite, Network::Full).await;
        let mut victim = Command::new("sleep").arg("100").spawn().unwrap();
        let killed = confined.status(&format!("kill -9 {}", victim.id())).await == 0;
        assert_eq!(killed, !kernel_confines);
        victim.kill().unwrap();
        victim.wait().unwrap();
        // Root has nothing left that reaches around the rules: modules, raw devices, mounts, tracing.
        let around: u64 = (1 << 16) | (1 << 17) | (1 << 19) | (1 << 21) | (1 << 27);
        let mask = "python3 -c 'import re; print(\"mask\", *re.findall(r\"Cap(?:Prm|Eff|Inh|Amb):\\t(\\S+)\", open(\"/proc/self/status\").read()))'";
        let outcome = confined.send(mask).await;
        let line = outcome.viewport.lines().find_map(|it| it.strip_prefix("mask ")).unwrap();
        for set in line.split_ascii_whitespace() {
            assert_eq!(u64::from_str_radix(set, 16).unwrap() & around, 0, "{line}");
        }
        confined.end().await;
    });
}

/// A session that could write there could choose what the next host starts with.
fn the_hosts_own_folder_is_not_written(provider: &Provider) {
    alone(async {
        let temporary = TempDir::new().unwrap();
        let home = temporary.path().join("a/b/home");
        let rows = format!(
            "- name: terminal\n- name: terminal-bash\n- name: {}\n- name: sandbox-policy\n  config: \
             {{ mode: workspace-write, writableFolders: ['{}'], home: '{}' }}\n",
            provider.enforces.name(),
            temporary.path().display(),
            home.display(),
        );
        let host = TestHost::boot(&rows).await;
        let agent = host.agent(&format!("agent-{}", std::process::id()));
        let outside = TempDir::new().unwrap();
        let mut confined = Confined { host, agent, id: String::new(), temporary, outside };
        match confined.open().await {
            Err(error) => {
                assert_eq!(provider.enforces.name(), "sandbox-landlock", "{error}");
                assert_eq!(error.code(), "SHELL_START_FAILED");
                let says = format!("`{}` is below", home.display());
                assert!(error.to_string().contains(&says), "{error}");
                confined.host.dispose().await.unwrap();
            }
            Ok(id) => {
                assert_eq!(provider.enforces.name(), "sandbox-bubblewrap");
                confined.id = id;
                fs::write(home.join("patch.yml"), "kept\n").unwrap();
                let before = picture(&home);
                for attempt in [
                    "echo x > $T/a/b/home/patch.yml",
                    "rm -f $T/a/b/home/patch.yml",
                    "mkdir $T/a/b/home/hosts",
                    "mv $T/a/b/home $T/moved",
                    "mv $T/a/b $T/moved",
                    "mv $T/a $T/moved",
                    "umount $T/a/b/home",
                ] {
                    assert_ne!(confined.status(attempt).await, 0, "{attempt}");
                    assert_eq!(picture(&home), before, "{attempt}");
                }
                confined.works("echo x > $T/a/b/new && mv $T/a/b/new $T/moved").await;
                confined.end().await;
            }
        }
    });
}

fn what_cannot_be_confined_is_refused_before_anything_starts(provider: &Provider) {
    alone(async {
        let confined = Confined::boot(provider, SandboxMode::WorkspaceWrite, Network::Full).await;
        let everything =
            AgentSpec { id: Some("everything".to_owned()), workspace_root: "/".into() };
        let agent = confined.host.service::<Agents>().create(everything).unwrap();
        let request = SpawnRequest { kind: "shell".to_owned(), ..SpawnRequest::default() };
        let terminals = confined.host.service::<Terminals>();
        let refused =
            terminals.spawn(&agent, request, &Cancel::new()).await.map(|_| ()).unwrap_err();
        assert_eq!(refused.code(), "SHELL_START_FAILED");
        let says = "`/` is the whole file system, so nothing would be confined";
        assert!(refused.to_string().contains(says), "{refused}");
        assert_eq!(processes_with_env("DSH_SESSION_ID", "everything"), []);
        confined.end().await;
    });
}

#[test]
fn a_mode_without_a_provider_ends_the_start_of_the_host_or_of_the_session() {
    alone(async {
        let rows = "- name: terminal\n- name: terminal-bash\n- name: sandbox-policy\n  config: { mode: MODE }\n";
        for (mode, says) in [
            ("read-only", "sandbox mode `read-only` needs a sandbox provider, and none is mounted"),
            ("workspace-write, writableFolders: [/no/such]", "there is no folder `/no/such`"),
            ("workspace-write, writableFolders: [/]", "writableFolders[0]"),
            ("danger-full-access, network: no-tcp", "`no-tcp` needs a confined mode"),
        ] {
            let booted = TestHost::try_boot(&rows.replace("MODE", mode)).await;
            let error = format!("{:#}", booted.map(|_| ()).unwrap_err());
            assert!(error.contains(says), "{error}");
        }
        let host = TestHost::boot(&rows.replace("MODE", "danger-full-access")).await;
        let agent = host.agent("unconfined");
        host.service::<SandboxPolicy>().set_mode(&agent, SandboxMode::ReadOnly).unwrap();
        let request = SpawnRequest { kind: "shell".to_owned(), ..SpawnRequest::default() };
        let terminals = host.service::<Terminals>();
        let refused =
            terminals.spawn(&agent, request, &Cancel::new()).await.map(|_| ()).unwrap_err();
        assert!(refused.to_string().contains("none is mounted"), "{refused}");
        assert_eq!(processes_with_env("DSH_SESSION_ID", "unconfined"), []);
        host.dispose().await.unwrap();
    });
}

#[test]
fn a_network_that_it_cannot_confine_is_refused() {
    let refusal = Landlock.supports(SandboxMode::ReadOnly, Network::None).unwrap_err();
    assert!(refusal.to_string().contains("`sandbox-bubblewrap`"), "{refusal}");
}
