//! From a policy to a ruleset of the kernel.
//!
//! Nothing here restricts this process: a ruleset holds for whoever takes it on.

use std::{io::ErrorKind, os::fd::OwnedFd};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, PathBeneath,
    PathFd, PathFdError, Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _,
    RulesetError, Scope,
};
use sandbox_policy::{DEVICES, Exposed, Network, Policy, Refusal};

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
        Network::None => Err(refuse(
            "Landlock can keep from TCP alone: use `network: no-tcp`, or the row `sandbox-bubblewrap`",
        )),
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
    if let Some(Exposed { home, writable, .. }) = policy.exposed()? {
        return Err(refuse(format!(
            "the host's own folder `{}` is below `{}`, which sessions may write to, and Landlock makes no \
             exceptions below such a folder: work in another folder, set DSH_HOME to one outside, or \
             use the row `sandbox-bubblewrap`, which can",
            home.display(),
            writable.display()
        )));
    }
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
    for folder in policy.writable()? {
        let fd = PathFd::new(folder).map_err(|error| refuse(error.to_string()))?;
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
