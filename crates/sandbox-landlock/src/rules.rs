//! From a policy to a ruleset of the kernel.
//!
//! Nothing here restricts this process: a ruleset holds for whoever takes it on.

use std::{
    io::ErrorKind,
    os::{fd::OwnedFd, unix::fs::MetadataExt as _},
    path::{Path, PathBuf},
};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, PathBeneath,
    PathFd, PathFdError, Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _,
    RulesetError, Scope,
};
use sandbox_policy::{Network, Policy, Refusal, SandboxMode};

/// Folders and devices that stay writable in every mode: what has no content of its own.
const DEVICES: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

/// Everything that changes files. Since version 3 (Linux 6.2): before it, a file could be cut
/// without being opened.
fn writing() -> BitFlags<AccessFs> {
    AccessFs::from_write(ABI::V3)
}

/// All of that but making device nodes, through which root would reach the disks themselves.
fn in_folder() -> BitFlags<AccessFs> {
    writing() & !(AccessFs::MakeChar | AccessFs::MakeBlock)
}

/// Commands to devices, since version 5 (Linux 6.10).
fn commands() -> BitFlags<AccessFs> {
    AccessFs::IoctlDev.into()
}

/// Since version 4 (Linux 6.7).
fn tcp() -> BitFlags<AccessNet> {
    AccessNet::from_all(ABI::V4)
}

/// Signals to processes and connections to abstract sockets outside, since version 6 (Linux 6.12).
fn outside() -> BitFlags<Scope> {
    Scope::from_all(ABI::V6)
}

/// A ruleset that fails for whatever the kernel does not know.
fn strict() -> Ruleset {
    Ruleset::default().set_compatibility(CompatLevel::HardRequirement)
}

fn knows_commands() -> bool {
    strict().handle_access(commands()).is_ok()
}

fn knows_outside() -> bool {
    strict().scope(outside()).is_ok()
}

/// Whether this kernel can do what each confined mode needs, and confine this network.
pub(crate) fn supported(network: Network) -> Result<(), Refusal> {
    if strict().handle_access(AccessFs::from_write(ABI::V1)).is_err() {
        return Err(refuse(
            "this kernel has no Landlock, or it is switched off (`lsm=` on its command line)",
        ));
    }
    if strict().handle_access(writing()).is_err() {
        return Err(refuse(
            "the Landlock of this kernel cannot keep files from being cut: 6.2 can",
        ));
    }
    match network {
        Network::Full => Ok(()),
        Network::NoTcp if strict().handle_access(tcp()).is_ok() => Ok(()),
        Network::NoTcp => {
            Err(refuse("the Landlock of this kernel cannot confine the network: 6.7 can"))
        }
    }
}

/// What stays open on this kernel.
pub(crate) fn limits() -> Vec<&'static str> {
    let mut limits = vec![
        "mode, owner, times and extended attributes of the user's own files can be changed everywhere",
        "daemons can be asked through sockets in the file system",
        "`network: no-tcp` leaves protocols other than TCP",
    ];
    if !knows_commands() {
        limits.push("devices that can be read take commands (Linux 6.10 confines that)");
    }
    if !knows_outside() {
        limits
            .push("processes of the same user outside can be signalled (Linux 6.12 confines that)");
    }
    limits
}

/// The ruleset that enforces `policy`, whose mode confines.
pub(crate) fn ruleset(policy: &Policy) -> Result<OwnedFd, Refusal> {
    supported(policy.network)?;
    let mut rules = create(policy.network).map_err(refused)?;
    // Before version 5 the kernel knows no such right to grant.
    let device = AccessFs::WriteFile
        | AccessFs::Truncate
        | if knows_commands() { commands() } else { BitFlags::EMPTY };
    for path in DEVICES {
        match PathFd::new(path) {
            Ok(fd) => rules = rules.add_rule(PathBeneath::new(fd, device)).map_err(refused)?,
            Err(error) if is_missing(&error) => {}
            Err(error) => return Err(refuse(error.to_string())),
        }
    }
    for folder in writable(policy) {
        let fd = open(&folder)?;
        rules = rules.add_rule(PathBeneath::new(fd, in_folder())).map_err(refused)?;
    }
    Option::<OwnedFd>::from(rules).ok_or_else(|| refuse("the kernel gave no ruleset"))
}

fn create(network: Network) -> Result<RulesetCreated, RulesetError> {
    let mut rules = strict().handle_access(writing())?;
    if knows_commands() {
        rules = rules.handle_access(commands())?;
    }
    if knows_outside() {
        rules = rules.scope(outside())?;
    }
    if network == Network::NoTcp {
        rules = rules.handle_access(tcp())?;
    }
    rules.create()
}

fn writable(policy: &Policy) -> Vec<PathBuf> {
    match policy.mode {
        SandboxMode::WorkspaceWrite => {
            let workspace = std::iter::once(policy.workspace_root.clone());
            workspace.chain(policy.writable_folders.iter().cloned()).collect()
        }
        SandboxMode::ReadOnly | SandboxMode::DangerFullAccess => Vec::new(),
    }
}

fn open(folder: &Path) -> Result<PathFd, Refusal> {
    let name = folder.display();
    let cannot = |error: &dyn std::fmt::Display| {
        refuse(format!("`{name}`, which is to be writable, cannot be opened: {error}"))
    };
    let here = std::fs::metadata(folder).map_err(|error| cannot(&error))?;
    if !here.is_dir() {
        return Err(refuse(format!("`{name}`, which is to be writable, is not a folder")));
    }
    let root = std::fs::metadata("/").map_err(|error| cannot(&error))?;
    if (here.dev(), here.ino()) == (root.dev(), root.ino()) {
        return Err(refuse(format!(
            "`{name}` is the whole file system, so nothing would be confined: start the host in the folder to work in"
        )));
    }
    PathFd::new(folder).map_err(|error| cannot(&error))
}

fn is_missing(error: &PathFdError) -> bool {
    match error {
        PathFdError::OpenCall { source, .. } => source.kind() == ErrorKind::NotFound,
        _ => false,
    }
}

#[expect(clippy::needless_pass_by_value, reason = "used as a function of map_err")]
fn refused(error: RulesetError) -> Refusal {
    Refusal(error.to_string())
}

fn refuse(reason: impl Into<String>) -> Refusal {
    Refusal(reason.into())
}
