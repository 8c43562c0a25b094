//! One agent: its identity, its scope, its inbox, and what it may see.

use std::{
    collections::BTreeSet,
    fmt,
    path::{Path, PathBuf},
    sync::{
        RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use dsh_core::{
    Scope,
    unwind::{read, write},
};
use tokio::sync::watch;

use crate::inbox::Inbox;

/// What a new agent needs.
#[derive(Clone, Debug)]
pub struct AgentSpec {
    /// Its id; a random one when absent.
    pub id: Option<String>,
    /// Absolute path of the folder it works in.
    pub workspace_root: PathBuf,
}

/// Identity of one agent instance, unique in this process and never used again. A key for tables
/// that hold something per agent; their entries belong into a cleanup of [`Agent::scope`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentInstance(u64);

/// What an agent is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentStatus {
    /// It waits for its user or for a notice.
    Idle,
    /// It is in a turn.
    Busy,
}

/// Hides tools from one agent, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolFilter {
    /// Only these are visible.
    Only(BTreeSet<String>),
    /// All but these are visible.
    Except(BTreeSet<String>),
}

/// One live agent: the owner of sessions and jobs.
pub struct Agent {
    instance: AgentInstance,
    id: String,
    workspace_root: PathBuf,
    scope: Scope,
    status: watch::Sender<AgentStatus>,
    /// Of all agents.
    changes: watch::Sender<u64>,
    inbox: Inbox,
    tool_filter: RwLock<Option<ToolFilter>>,
}

impl Agent {
    pub(crate) fn new(
        id: String,
        workspace_root: PathBuf,
        scope: Scope,
        changes: watch::Sender<u64>,
    ) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self {
            instance: AgentInstance(NEXT.fetch_add(1, Ordering::Relaxed)),
            id,
            workspace_root,
            scope,
            status: watch::Sender::new(AgentStatus::Idle),
            changes,
            inbox: Inbox::new(),
            tool_filter: RwLock::new(None),
        }
    }

    /// This very instance.
    pub fn instance(&self) -> AgentInstance {
        self.instance
    }

    /// Its id: its session in the log, and `DSH_SESSION_ID`. Two instances may have had the same.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The folder it works in, an absolute path.
    pub fn workspace_root(&self) -> &Path {
        &self.workspace_root
    }

    /// Ends with the agent; its cleanups are awaited by
    /// [`AgentRegistry::dispose`](crate::AgentRegistry::dispose), which is the way to end it.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Whether its end has begun.
    pub fn is_ending(&self) -> bool {
        self.scope.token().is_cancelled()
    }

    /// What it is doing.
    pub fn status(&self) -> AgentStatus {
        *self.status.borrow()
    }

    /// Says what it is doing. For whoever runs its turns.
    pub fn set_status(&self, status: AgentStatus) {
        self.status.send_replace(status);
        self.changes.send_modify(|count| *count += 1);
    }

    /// Its status and the changes of it.
    pub fn watch_status(&self) -> watch::Receiver<AgentStatus> {
        self.status.subscribe()
    }

    /// Notices it has not read yet.
    pub fn inbox(&self) -> &Inbox {
        &self.inbox
    }

    /// Replaces its tool filter; `None` shows every tool. Calls that run already are not touched.
    pub fn set_tool_filter(&self, filter: Option<ToolFilter>) {
        *write(&self.tool_filter) = filter;
    }

    /// Whether its filter lets it see and call the tool of this name.
    pub fn sees_tool(&self, name: &str) -> bool {
        match &*read(&self.tool_filter) {
            None => true,
            Some(ToolFilter::Only(names)) => names.contains(name),
            Some(ToolFilter::Except(names)) => !names.contains(name),
        }
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("id", &self.id)
            .field("instance", &self.instance.0)
            .field("workspace_root", &self.workspace_root)
            .finish_non_exhaustive()
    }
}
