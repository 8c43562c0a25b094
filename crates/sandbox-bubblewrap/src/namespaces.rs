//! From a policy to namespaces, which live on without a process as long as their descriptors.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
};

use sandbox_policy::{DEVICES, Exposed, Network, Policy, Refusal};

/// What runs in the namespaces until they are open: it says its number, and waits for the end of its
/// input.
const HOLDER: [&str; 3] = ["/bin/sh", "-c", "echo $$; read -r _"];

/// The namespaces in which `policy`, whose mode confines, holds.
pub(crate) fn of(policy: &Policy) -> Result<Arc<[OwnedFd]>, Refusal> {
    make(&policy.writable()?, policy.exposed()?.as_ref(), policy.network)
}

/// Namespaces in which files can be written in `folders` alone, but not in the host's own. Blocks until
/// `bwrap` has made them, a few milliseconds.
pub(crate) fn make(
    folders: &[PathBuf],
    exposed: Option<&Exposed>,
    network: Network,
) -> Result<Arc<[OwnedFd]>, Refusal> {
    let mut child = Command::new("bwrap")
        .args(arguments(folders, exposed, network))
        .args(HOLDER)
        .env("LC_ALL", "C")
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                Refusal("there is no program `bwrap` (install bubblewrap)".to_owned())
            }
            _ => Refusal(format!("`bwrap` cannot be run: {error}")),
        })?;
    let opened = open(&mut child, network);
    // Its input ends here, and with that it does.
    let ended = child.wait_with_output();
    opened.map_err(|error| {
        let said = ended.map(|it| String::from_utf8_lossy(&it.stderr).trim().to_owned());
        let reason = said.ok().filter(|it| !it.is_empty()).unwrap_or_else(|| error.to_string());
        Refusal(format!("no sandbox can be made here ({reason})"))
    })
}

/// Opens the namespaces of the holder, once it says that it is in them.
fn open(child: &mut Child, network: Network) -> io::Result<Arc<[OwnedFd]>> {
    let output = child.stdout.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
    let mut said = String::new();
    BufReader::new(output.take(32)).read_line(&mut said)?;
    let holder: u32 = said.trim().parse().map_err(|_| io::Error::other("it ended at once"))?;
    // The first owns the others.
    let mut names = vec!["user", "mnt"];
    if network == Network::None {
        names.push("net");
    }
    let open = |name| File::open(format!("/proc/{holder}/ns/{name}")).map(OwnedFd::from);
    names.into_iter().map(open).collect()
}

fn arguments(folders: &[PathBuf], exposed: Option<&Exposed>, network: Network) -> Vec<OsString> {
    // A user namespace even for root: its rights end at the sandbox.
    let mut arguments: Vec<OsString> = vec!["--unshare-user".into()];
    if network == Network::None {
        arguments.push("--unshare-net".into());
    }
    let mut bind = |option: &str, path: &Path, place: &Path| {
        arguments.extend([option.into(), path.into(), place.into()]);
    };
    // No device can be used below it.
    bind("--ro-bind", Path::new("/"), Path::new("/"));
    for place in DEVICES.map(Path::new) {
        // The kernel finds the terminals of the other one by its folder, which this is not.
        let device =
            if place == Path::new("/dev/ptmx") { Path::new("/dev/pts/ptmx") } else { place };
        // In a container it may be a link to that already, and stays one.
        if device.exists() && !place.is_symlink() {
            bind("--dev-bind", device, place);
        }
    }
    for folder in folders {
        bind("--bind", folder, folder);
    }
    if let Some(Exposed { home, between, .. }) = exposed {
        // What something is mounted at keeps its name.
        for folder in between {
            bind("--bind", folder, folder);
        }
        bind("--ro-bind", home, home);
    }
    arguments.push("--".into());
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_written_is_bound_over_what_may_not() {
        let all = arguments(&["/w".into(), "/t".into()], None, Network::None);
        let all: Vec<_> = all.iter().map(|it| it.to_str().unwrap()).collect();
        assert_eq!(all[..5], ["--unshare-user", "--unshare-net", "--ro-bind", "/", "/"]);
        assert_eq!(all[all.len() - 7..], ["--bind", "/w", "/w", "--bind", "/t", "/t", "--"]);
        assert!(all.windows(3).any(|it| it == ["--dev-bind", "/dev/null", "/dev/null"]));
        let exposed = Exposed {
            home: "/w/a/.dsh".into(),
            between: vec!["/w/a".into()],
            writable: "/w".into(),
        };
        let kept = arguments(&["/w".into()], Some(&exposed), Network::Full);
        let kept: Vec<_> = kept.iter().map(|it| it.to_str().unwrap()).collect();
        let last = ["--bind", "/w/a", "/w/a", "--ro-bind", "/w/a/.dsh", "/w/a/.dsh", "--"];
        assert_eq!(kept[kept.len() - 7..], last);
        assert!(!arguments(&[], None, Network::Full).contains(&"--unshare-net".into()));
    }
}
