//! What a run adds to the machine for its scenarios: users, servers, folders; and their end.
//!
//! Everything is named after this process, listens on loopback or in a private folder, and is
//! taken away by [`World::close`], which is to be called however the run ends.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    net::TcpListener,
    os::unix::fs::{PermissionsExt as _, chown},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, ensure};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncWriteExt as _, BufReader},
    process::{Child, Command},
    time::timeout,
};

use super::scenario::{Provision, Scenario};

/// Longest end of a server.
const LONGEST_END: Duration = Duration::from_secs(20);

const PASSWORD: &str = "Lark-4711";

/// Where programs are that an ordinary search path may lack.
const MORE_PATHS: [&str; 3] = ["/usr/sbin", "/sbin", "/usr/games"];

/// What the scenarios may rely on.
pub(crate) struct World {
    scratch: TempDir,
    path: String,
    users: Vec<User>,
    servers: Vec<Server>,
    words: BTreeMap<&'static str, String>,
}

/// An account of this run.
#[derive(Clone)]
pub(crate) struct User {
    /// Its name.
    pub(crate) name: String,
    /// Its number, also of its group.
    pub(crate) uid: u32,
    /// Its home.
    pub(crate) home: PathBuf,
}

struct Server {
    name: &'static str,
    process: Child,
    /// What ends it in order.
    end: Signal,
}

impl World {
    /// A world with what `provisions` names. On an error nothing is left.
    pub(crate) async fn prepare(provisions: BTreeSet<Provision>) -> anyhow::Result<Self> {
        let scratch = tempfile::Builder::new().prefix("matrix-").tempdir()?;
        fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755))?;
        fs::create_dir(scratch.path().join("home"))?;
        let path = search_path();
        let (users, servers, words) = Default::default();
        let mut world = Self { scratch, path, users, servers, words };
        match world.provide(&provisions).await {
            Ok(()) => Ok(world),
            Err(error) => match world.close().await {
                Ok(()) => Err(error),
                Err(also) => Err(error.context(format!("and not all of it was undone: {also:#}"))),
            },
        }
    }

    async fn provide(&mut self, provisions: &BTreeSet<Provision>) -> anyhow::Result<()> {
        if provisions.is_empty() {
            return Ok(());
        }
        // The servers run as these or let them in.
        for suffix in ["a", "b"] {
            self.add_user(suffix).await?;
        }
        if provisions.contains(&Provision::Sshd) {
            self.start_sshd().await.context("the SSH server")?;
        }
        if provisions.contains(&Provision::Postgres) {
            self.start_postgres().await.context("the PostgreSQL server")?;
        }
        Ok(())
    }

    /// The user under whom hosts of an ordinary user run.
    pub(crate) fn ordinary_user(&self) -> Option<&User> {
        self.users.first()
    }

    /// Where a player's programs are looked for.
    pub(crate) fn search_path(&self) -> &str {
        &self.path
    }

    /// The home of a player that runs as whoever started the run. Empty.
    pub(crate) fn home(&self) -> PathBuf {
        self.scratch.path().join("home")
    }

    /// A copy of this program that everybody may run.
    pub(crate) fn program(&self) -> anyhow::Result<PathBuf> {
        let copy = self.scratch.path().join("player");
        if !copy.exists() {
            fs::copy("/proc/self/exe", &copy)?;
            fs::set_permissions(&copy, fs::Permissions::from_mode(0o755))?;
        }
        Ok(copy)
    }

    /// The scenario with every `{{word}}` of this world replaced.
    pub(crate) fn fill(&self, scenario: &Scenario) -> Scenario {
        let mut scenario = scenario.clone();
        for step in &mut scenario.steps {
            let texts = step.send.iter_mut().chain(&mut step.raw).chain(&mut step.ends);
            for text in texts.chain(step.shows.as_mut_slice()) {
                for (word, value) in &self.words {
                    *text = text.replace(&format!("{{{{{word}}}}}"), value);
                }
            }
        }
        scenario
    }

    async fn add_user(&mut self, suffix: &str) -> anyhow::Result<()> {
        let name = format!("matrix{}{suffix}", std::process::id());
        let home = self.scratch.path().join(&name);
        let home_name = home.to_string_lossy();
        run(
            "useradd",
            &["--home-dir", &home_name, "--shell", "/bin/bash", "--user-group", &name],
            "",
        )
        .await?;
        self.users.push(User { name: name.clone(), uid: 0, home: home.clone() });
        let uid: u32 = run("id", &["--user", &name], "").await?.trim().parse()?;
        fs::create_dir(&home)?;
        chown(&home, Some(uid), Some(uid))?;
        if let Some(user) = self.users.last_mut() {
            user.uid = uid;
        }
        run("chpasswd", &[], &format!("{name}:{PASSWORD}\n")).await?;
        self.words.insert("password", PASSWORD.to_owned());
        if suffix == "a" {
            self.words.insert("user", name.clone());
            if Path::new("/etc/sudoers.d").is_dir() {
                let rule = sudoers(&name);
                fs::write(&rule, format!("Defaults:{name} lecture=never\n{name} ALL=(ALL) ALL\n"))?;
                fs::set_permissions(&rule, fs::Permissions::from_mode(0o440))?;
            }
        } else {
            self.words.insert("other", name);
        }
        Ok(())
    }

    async fn start_sshd(&mut self) -> anyhow::Result<()> {
        let folder = self.scratch.path().join("sshd");
        fs::create_dir(&folder)?;
        fs::create_dir_all("/run/sshd")?;
        let key = folder.join("key");
        run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &key.to_string_lossy()], "")
            .await?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let config = folder.join("config");
        let user = self.users.first().context("no user")?.name.clone();
        fs::write(
            &config,
            format!(
                "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nPidFile none\nUsePAM no\n\
                 PasswordAuthentication yes\nAllowUsers {user}\nPrintMotd no\nPrintLastLog no\n",
                key.display()
            ),
        )?;
        self.words.insert("port", port.to_string());
        // It starts itself again for every connection, by the path it was started with.
        let program = find("sshd", &self.path).context("sshd is not installed")?;
        let mut command = Command::new(program);
        command.args(["-D", "-e", "-f"]).arg(&config);
        self.start("sshd", command, "Server listening", Signal::TERM).await
    }

    async fn start_postgres(&mut self) -> anyhow::Result<()> {
        let user = self.users.first().context("no user")?.clone();
        let folder = user.home.join("postgres");
        let (init, serve) = ("initdb", "postgres");
        let mut command = Command::new(find(init, &self.path).context("initdb is not installed")?);
        command.uid(user.uid).gid(user.uid).current_dir(&user.home).env("LC_ALL", "C");
        command.args(["--auth=trust", "--username=postgres", "--no-sync", "-D"]).arg(&folder);
        let output = command.stdin(Stdio::null()).output().await?;
        ensure!(output.status.success(), "initdb: {}", String::from_utf8_lossy(&output.stderr));
        self.words.insert("postgres", folder.display().to_string());
        let mut command =
            Command::new(find(serve, &self.path).context("postgres is not installed")?);
        command.uid(user.uid).gid(user.uid).current_dir(&user.home).env("LC_ALL", "C");
        command.arg("-D").arg(&folder).arg("-k").arg(&folder).args(["-c", "listen_addresses="]);
        // Its workers go with it, and so does its shared memory.
        self.start(serve, command, "ready to accept connections", Signal::INT).await
    }

    /// Starts a server and waits for the line that says it serves.
    async fn start(
        &mut self,
        name: &'static str,
        mut command: Command,
        serves: &str,
        end: Signal,
    ) -> anyhow::Result<()> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn()?;
        let diagnostics = process.stderr.take().context("no standard error")?;
        self.servers.push(Server { name, process, end });
        let mut lines = BufReader::new(diagnostics);
        let mut said = String::new();
        while !said.contains(serves) {
            let read = lines.read_line(&mut said).await?;
            ensure!(read > 0, "{name} ended: {said}");
        }
        // Who stops reading would stop the server too.
        drop(tokio::spawn(drain(lines)));
        Ok(())
    }

    /// Ends every server and removes every user. Attempts all, and names what stays.
    pub(crate) async fn close(mut self) -> anyhow::Result<()> {
        let mut stays = Vec::new();
        for Server { name, process, end } in self.servers.iter_mut().rev() {
            if let Some(pid) = process.id().and_then(|it| Pid::from_raw(it.cast_signed()))
                && let Err(error) = kill_process(pid, *end)
            {
                stays.push(format!("{name}: {error}"));
            }
            match timeout(LONGEST_END, process.wait()).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => stays.push(format!("{name}: {error}")),
                Err(_) => {
                    stays.push(format!("{name} did not end in {LONGEST_END:?} and was killed"));
                    stays.extend(process.kill().await.err().map(|it| format!("{name}: {it}")));
                }
            }
        }
        for user in &self.users {
            drop(fs::remove_file(sudoers(&user.name)));
            // What `su` and `ssh` left behind for a moment would hold the account.
            if let Err(error) = run("userdel", &["--force", &user.name], "").await {
                stays.push(format!("{error:#}"));
            }
        }
        if let Err(error) = self.scratch.close() {
            stays.push(error.to_string());
        }
        ensure!(stays.is_empty(), "{}", stays.join("; "));
        Ok(())
    }
}

/// Whether this process may add users and start servers.
pub(crate) fn may_provide() -> bool {
    geteuid().is_root()
}

/// The first file of this name on `path`.
pub(crate) fn find(program: &str, path: &str) -> Option<PathBuf> {
    env::split_paths(path).map(|it| it.join(program)).find(|it| it.is_file())
}

/// The search path of this process and the folders that it may lack.
pub(crate) fn search_path() -> String {
    let own = env::var("PATH").unwrap_or_default();
    let mut path: Vec<String> = own.split(':').map(str::to_owned).collect();
    path.extend(MORE_PATHS.map(str::to_owned));
    if let Ok(versions) = fs::read_dir("/usr/lib/postgresql") {
        path.extend(versions.flatten().map(|it| it.path().join("bin").display().to_string()));
    }
    path.join(":")
}

fn sudoers(user: &str) -> PathBuf {
    Path::new("/etc/sudoers.d").join(user)
}

async fn drain(mut lines: impl AsyncRead + Unpin) {
    // It ends with the server; what it says is nobody's business then.
    drop(tokio::io::copy(&mut lines, &mut tokio::io::sink()).await);
}

/// Runs a program to its end with `input` and returns what it said.
async fn run(program: &str, arguments: &[&str], input: &str) -> anyhow::Result<String> {
    let mut command = Command::new(program);
    command.args(arguments).env("PATH", search_path());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().with_context(|| format!("cannot start {program}"))?;
    if let Some(mut stdin) = process.stdin.take() {
        stdin.write_all(input.as_bytes()).await?;
    }
    let output = process.wait_with_output().await?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program} failed: {}", said.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
