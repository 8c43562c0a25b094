//! What this machine allows: for whoever asks why something is weaker than it could be.

use dsh_core::Finding;
use rustix::{
    process::{Resource, getpid, getrlimit},
    pty::{OpenptFlags, openpt},
};

use super::{
    cgroup,
    controllers::{Controller, Layer},
    isolation::pid_namespaces_work,
    probe,
    procfs::Proc,
    spawn,
};

/// Looks at what terminals, containment and evidence rest on. Needs a tokio runtime; blocks for some
/// milliseconds.
pub fn findings() -> Vec<Finding> {
    let proc = Proc::open();
    let mut findings = vec![
        terminals(),
        process_table(proc.as_ref()),
        orphans(),
        marks(),
        isolation(),
        limits(Controller::Memory.layer(), Controller::Pids.layer()),
        blocked_readers(),
        waits(),
    ];
    findings.extend(group());
    findings
}

fn terminals() -> Finding {
    const TOPIC: &str = "terminals";
    match openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY) {
        Ok(_) => Finding::good(TOPIC, "pseudo-terminals can be opened"),
        Err(error) => Finding::broken(
            TOPIC,
            format!("no pseudo-terminal can be opened: {error}"),
            "mount devpts at /dev/pts with /dev/ptmx, or raise the sysctl kernel.pty.max",
        ),
    }
}

fn process_table(proc: Option<&Proc>) -> Finding {
    const TOPIC: &str = "process table";
    let Some(proc) = proc else {
        return Finding::weaker(
            TOPIC,
            "/proc is not the process table of this PID namespace: waits are inferred from silence, \
             and a close reaches only what is on the terminal",
            "mount it: mount -t proc proc /proc",
        );
    };
    let own = getpid().as_raw_nonzero().get();
    if own != 1 && proc.stat(1).is_none() {
        return Finding::weaker(
            TOPIC,
            "/proc hides processes of other users: programs under sudo or su are seen less well",
            "mount /proc without hidepid, or run the host in the group that its option gid names",
        );
    }
    Finding::good(TOPIC, "/proc shows every process")
}

fn orphans() -> Finding {
    const TOPIC: &str = "orphans";
    if spawn::is_subreaper() {
        return Finding::good(TOPIC, "the host is the reaper of what its sessions leave behind");
    }
    Finding::weaker(
        TOPIC,
        "the system does not give orphans to the host: they are found by their marks alone",
        "use Linux 3.4 or newer",
    )
}

/// What came of a control group for the host, if one was asked for.
fn group() -> Option<Finding> {
    const TOPIC: &str = "control group";
    Some(match cgroup::own()? {
        Ok(group) => Finding::good(
            TOPIC,
            format!(
                "each session has one below {}: whatever a process sheds, it is found there, and the \
                 kernel kills all at once",
                group.path().display()
            ),
        ),
        Err(reason) => Finding::weaker(
            TOPIC,
            format!(
                "the host has none of its own, so processes are known by their marks: {reason}"
            ),
            "start the host in a group that it may write: systemd-run --user --scope -p Delegate=yes dsh …",
        ),
    })
}

fn marks() -> Finding {
    const TOPIC: &str = "marks";
    let highest = getrlimit(Resource::Rttime).maximum;
    if highest.is_none() {
        return Finding::good(
            TOPIC,
            "every process of a session inherits a mark in its environment and in a resource limit",
        );
    }
    Finding::weaker(
        TOPIC,
        "the limit on real-time CPU time is set already (is this inside another session?): processes \
         that clear their environment are known by their parents, session and terminal alone",
        "start the host with `ulimit -R unlimited`",
    )
}

fn isolation() -> Finding {
    const TOPIC: &str = "isolation";
    match pid_namespaces_work() {
        Ok(()) => Finding::good(
            TOPIC,
            "sessions can have PID namespaces (isolation: pid-namespace of the row terminal-bash); \
             the default is none",
        ),
        Err(reason) => Finding::weaker(
            TOPIC,
            "a session can signal whatever its user can, this host included (kill -9 -1)",
            reason,
        ),
    }
}

/// By what a session is held to its limits.
fn limits(memory: Result<&Layer, &str>, pids: Result<&Layer, &str>) -> Finding {
    const TOPIC: &str = "limits";
    const CPU: &str = "CPU time is limited in each process, and the sum is watched";
    let by = |layer: &Layer| match layer {
        Layer::Own => "the control group that a session has".to_owned(),
        Layer::Below(folder) => format!("a control group below {}", folder.display()),
    };
    let memory = memory
        .map(|it| format!("memory of a session is enforced by {}", by(it)))
        .map_err(|why| {
            format!(
                "memory of a session is watched, and what one process may write is limited, since no \
                 control group can: {why}"
            )
        });
    let processes = pids
        .map(|it| format!("processes are watched, and their threads limited by {}", by(it)))
        .map_err(|why| format!("processes are watched alone, since no control group can: {why}"));
    match (memory, processes) {
        (Ok(memory), Ok(processes)) => {
            Finding::good(TOPIC, format!("{memory}; {processes}; {CPU}"))
        }
        (Ok(memory) | Err(memory), Ok(processes) | Err(processes)) => Finding::weaker(
            TOPIC,
            format!("{memory}; {processes}; {CPU}"),
            "run the host as root, or in the topmost control group of its machine or container",
        ),
    }
}

fn blocked_readers() -> Finding {
    const TOPIC: &str = "blocked readers";
    if probe::reader_test_works() {
        return Finding::good(TOPIC, "the kernel tells whether somebody waits for a terminal");
    }
    Finding::weaker(
        TOPIC,
        "the kernel does not tell whether somebody waits for a terminal: such waits of other users' \
         programs are inferred",
        "use Linux 4.7 or newer",
    )
}

/// Whether system calls of descendants can be seen.
fn waits() -> Finding {
    const TOPIC: &str = "waits";
    let child = std::process::Command::new("/bin/sleep").arg("10").spawn();
    let Ok(mut child) = child else {
        return Finding::weaker(TOPIC, "unknown: /bin/sleep cannot be run", "install coreutils");
    };
    let seen = std::fs::read_to_string(format!("/proc/{}/syscall", child.id()));
    if let Err(error) = child.kill().and_then(|()| child.wait()) {
        tracing::debug!(%error, "the child of a test was not ended");
    }
    match seen {
        Ok(_) => Finding::good(TOPIC, "what a program waits for is read from the kernel"),
        Err(error) => Finding::weaker(
            TOPIC,
            format!("what a program waits for cannot be read ({error}): waits are inferred"),
            "allow ptrace of descendants (sysctl kernel.yama.ptrace_scope 0 or 1; in a container the \
             capability SYS_PTRACE, or a seccomp profile that permits it)",
        ),
    }
}

#[cfg(test)]
mod tests {
    use dsh_core::Grade;

    use super::*;

    #[test]
    fn limits_are_said_to_be_enforced_where_they_are() {
        let below = Layer::Below("/groups/memory".into());
        let good = limits(Ok(&below), Ok(&Layer::Own));
        assert_eq!(good.grade, Grade::Good);
        assert_eq!(
            good.found,
            "memory of a session is enforced by a control group below /groups/memory; processes are \
             watched, and their threads limited by the control group that a session has; CPU time is \
             limited in each process, and the sum is watched"
        );
        for (memory, pids) in [(Ok(&below), Err("no pids")), (Err("no memory"), Ok(&below))] {
            let weaker = limits(memory, pids);
            assert_eq!(weaker.grade, Grade::Weaker);
            let why = memory.err().or(pids.err()).unwrap();
            assert!(weaker.found.contains(&format!("since no control group can: {why};")));
        }
    }
}
