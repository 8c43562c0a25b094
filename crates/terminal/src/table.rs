//! The table of members: sessions being opened, open ones, and rollbacks that failed.
//!
//! Guarantees:
//! - every step from one phase to the next happens under one lock, so a member is activity of its
//!   owner from its admission to its removal, without a gap, and a setup is either published or
//!   lost, never both;
//! - an owner is an instance: a new agent with an old one's id shares nothing with it;
//! - numbers are never reused; nothing of a backend is called under the lock.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
};

use agents::{Agent, AgentInstance};
use dsh_core::{Cancel, lock};
use tokio_util::sync::CancellationToken;

use crate::{
    backend::{SessionId, TerminalBackend},
    changes::Changes,
    error::TerminalError,
    session::Session,
};

#[derive(Default)]
pub(crate) struct Table {
    state: Mutex<State>,
    changes: Changes,
}

#[derive(Default)]
struct State {
    disposing: bool,
    minted: u64,
    owners: Vec<OwnerRecord>,
    members: BTreeMap<u64, Member>,
}

/// An owner whose disposal will come here.
struct OwnerRecord {
    owner: AgentInstance,
    disposing: bool,
}

struct Member {
    id: SessionId,
    owner: AgentInstance,
    backend: Arc<dyn TerminalBackend>,
    phase: Phase,
}

enum Phase {
    Opening(Opening),
    Open(Arc<Session>),
    Retained(Retained),
}

/// A setup that runs.
struct Opening {
    name: Option<String>,
    cancel: Cancel,
    /// Why it must not be published.
    lost: Option<TerminalError>,
    ended: CancellationToken,
}

/// A setup whose rollback failed.
#[derive(Clone)]
pub(crate) struct Retained {
    pub(crate) id: SessionId,
    /// What to close again; none when the backend gave nothing to close.
    pub(crate) session: Option<Arc<Session>>,
    pub(crate) failure: TerminalError,
    /// Whether a disposal has reported the failure already.
    pub(crate) reported: bool,
}

/// What a caller wants opened, and by whom.
pub(crate) struct Admission<'a> {
    pub(crate) agent: &'a Arc<Agent>,
    pub(crate) name: Option<&'a str>,
    /// Looks the backend up, under the table's lock.
    pub(crate) backend: &'a dyn Fn() -> Result<Arc<dyn TerminalBackend>, TerminalError>,
    /// Ties the owner's disposal to the table; false when the owner is already going.
    pub(crate) adopt: &'a dyn Fn() -> bool,
}

/// A setup that was admitted.
pub(crate) struct Admitted {
    pub(crate) number: u64,
    pub(crate) id: SessionId,
    pub(crate) backend: Arc<dyn TerminalBackend>,
    /// Cancelled when the setup is lost.
    pub(crate) cancel: Cancel,
    /// To be cancelled by the setup when it has ended.
    pub(crate) ended: CancellationToken,
    /// To be told of what happens to the session.
    pub(crate) changes: Changes,
}

/// Whose members.
#[derive(Clone)]
pub(crate) enum Selection {
    All,
    Owner(AgentInstance),
    Backend(Arc<dyn TerminalBackend>),
}

impl Selection {
    fn holds(&self, member: &Member) -> bool {
        match self {
            Self::All => true,
            Self::Owner(owner) => member.owner == *owner,
            Self::Backend(backend) => {
                std::ptr::addr_eq(Arc::as_ptr(backend), Arc::as_ptr(&member.backend))
            }
        }
    }
}

impl Table {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Admits a setup: all fences, then an id.
    pub(crate) fn admit(&self, admission: &Admission<'_>) -> Result<Admitted, TerminalError> {
        let owner = admission.agent.instance();
        let mut state = self.state();
        if state.disposing {
            return Err(TerminalError::ServiceDisposing);
        }
        let backend = (admission.backend)()?;
        if let Some(name) = admission.name
            && state.members.values().any(|it| it.owner == owner && it.phase.name() == Some(name))
        {
            return Err(TerminalError::DuplicateName { name: name.to_owned() });
        }
        let known = state.owners.iter().find(|it| it.owner == owner).map(|it| !it.disposing);
        let adopted = known.unwrap_or_else(|| {
            let adopted = (admission.adopt)();
            if adopted {
                state.owners.push(OwnerRecord { owner, disposing: false });
            }
            adopted
        });
        if !adopted {
            return Err(TerminalError::OwnerNotLive { owner: admission.agent.id().to_owned() });
        }
        state.minted += 1;
        let number = state.minted;
        let id = SessionId(format!("pty-{number}"));
        let (cancel, ended) = (Cancel::new(), CancellationToken::new());
        let opening = Opening {
            name: admission.name.map(str::to_owned),
            cancel: cancel.clone(),
            lost: None,
            ended: ended.clone(),
        };
        let phase = Phase::Opening(opening);
        let member = Member { id: id.clone(), owner, backend: Arc::clone(&backend), phase };
        state.members.insert(number, member);
        Ok(Admitted { number, id, backend, cancel, ended, changes: self.changes.clone() })
    }

    /// Publishes a session whose setup succeeded, or says why it is lost. `caller` is the
    /// caller's own cancellation.
    pub(crate) fn publish(
        &self,
        session: &Arc<Session>,
        caller: &Cancel,
    ) -> Result<(), TerminalError> {
        let mut state = self.state();
        let Some(member) = state.members.get_mut(&session.number) else {
            return Err(TerminalError::NoSession { id: session.id.to_string() });
        };
        if let Some(lost) = member.lost(caller) {
            return Err(lost);
        }
        member.phase = Phase::Open(Arc::clone(session));
        Ok(())
    }

    /// Takes back a setup that failed with `error`; answers why from the caller's point of view.
    /// What a backend could not undo stays as activity of the owner.
    pub(crate) fn withdraw(
        &self,
        number: u64,
        caller: &Cancel,
        error: TerminalError,
    ) -> TerminalError {
        let mut state = self.state();
        let Some(member) = state.members.get_mut(&number) else { return error };
        let lost = member.lost(caller);
        if matches!(error, TerminalError::CloseIncomplete(_)) {
            member.retain(None, error.clone());
        } else {
            state.members.remove(&number);
        }
        lost.unwrap_or(error)
    }

    /// Keeps a session whose rollback failed.
    pub(crate) fn retain(&self, session: &Arc<Session>, failure: TerminalError) {
        if let Some(member) = self.state().members.get_mut(&session.number) {
            member.retain(Some(Arc::clone(session)), failure);
        }
    }

    /// Loses a setup that still runs; the session, if it was published already.
    pub(crate) fn abandon(&self, number: u64, why: &TerminalError) -> Option<Arc<Session>> {
        match &mut self.state().members.get_mut(&number)?.phase {
            Phase::Opening(opening) => {
                opening.lose(why);
                None
            }
            Phase::Open(session) => Some(Arc::clone(session)),
            Phase::Retained(_) => None,
        }
    }

    /// Forgets a member that is gone.
    pub(crate) fn remove(&self, number: u64) {
        self.state().members.remove(&number);
    }

    /// The session that `agent` may use under this id.
    pub(crate) fn find(&self, agent: &Arc<Agent>, id: &str) -> Result<Arc<Session>, TerminalError> {
        let owner = agent.instance();
        let state = self.state();
        let found = state.members.values().find_map(|member| match &member.phase {
            Phase::Open(session) if member.id.as_str() == id => Some((member, session)),
            _ => None,
        });
        match found {
            Some((member, session)) if member.owner == owner => return Ok(Arc::clone(session)),
            Some(_) => {
                let error = TerminalError::ForeignSession { id: id.to_owned() };
                tracing::debug!(code = error.code(), agent = agent.id(), "{error}");
            }
            None => {}
        }
        Err(TerminalError::NoSession { id: id.to_owned() })
    }

    /// The session with this id, whoever owns it.
    pub(crate) fn find_any(&self, id: &str) -> Result<Arc<Session>, TerminalError> {
        let all = self.open(&Selection::All);
        let found = all.into_iter().find(|it| it.id.as_str() == id);
        found.ok_or_else(|| TerminalError::NoSession { id: id.to_owned() })
    }

    /// What tells of changes.
    pub(crate) fn changes(&self) -> &Changes {
        &self.changes
    }

    /// The published sessions of `agent`, by id.
    pub(crate) fn of_owner(&self, agent: &Arc<Agent>) -> Vec<Arc<Session>> {
        self.open(&Selection::Owner(agent.instance()))
    }

    /// Whether `agent` has any member.
    pub(crate) fn is_active(&self, agent: &Agent) -> bool {
        let owner = agent.instance();
        self.state().members.values().any(|member| member.owner == owner)
    }

    /// Whether the service still takes anything.
    pub(crate) fn is_disposing(&self) -> bool {
        self.state().disposing
    }

    /// Refuses further setups of the selection, and loses the ones that run. Each resolves its
    /// token when it has ended.
    pub(crate) fn shut(&self, which: &Selection, why: &TerminalError) -> Vec<CancellationToken> {
        let mut state = self.state();
        match which {
            Selection::All => state.disposing = true,
            Selection::Owner(owner) => {
                for record in state.owners.iter_mut().filter(|it| it.owner == *owner) {
                    record.disposing = true;
                }
            }
            // The backend's entry is already gone by then.
            Selection::Backend(_) => {}
        }
        let members = state.members.values_mut().filter(|member| which.holds(member));
        let lost = members.filter_map(|member| match &mut member.phase {
            Phase::Opening(opening) => {
                opening.lose(why);
                Some(opening.ended.clone())
            }
            _ => None,
        });
        lost.collect()
    }

    /// The published sessions of the selection.
    pub(crate) fn open(&self, which: &Selection) -> Vec<Arc<Session>> {
        let state = self.state();
        let members = state.members.values().filter(|member| which.holds(member));
        let open = members.filter_map(|member| match &member.phase {
            Phase::Open(session) => Some(Arc::clone(session)),
            _ => None,
        });
        open.collect()
    }

    /// The failed rollbacks of the selection. Those without a session are consumed, the others
    /// count as reported from now on.
    pub(crate) fn take_retained(&self, which: &Selection) -> Vec<Retained> {
        let mut state = self.state();
        let mut taken = Vec::new();
        state.members.retain(|_, member| {
            if !which.holds(member) {
                return true;
            }
            let Phase::Retained(retained) = &mut member.phase else { return true };
            taken.push(retained.clone());
            retained.reported = true;
            retained.session.is_some()
        });
        taken
    }

    /// Forgets an owner that has nothing left here. Its closed scope refuses it from now on.
    pub(crate) fn forget(&self, which: &Selection) {
        if let Selection::Owner(owner) = which {
            self.state().owners.retain(|record| record.owner != *owner);
        }
    }
}

impl Member {
    /// Why the setup is lost, if it is.
    fn lost(&mut self, caller: &Cancel) -> Option<TerminalError> {
        let Phase::Opening(opening) = &mut self.phase else { return None };
        if let Some(reason) = caller.reason() {
            opening.lose(&TerminalError::Cancelled { reason: reason.to_owned() });
        }
        opening.lost.clone()
    }

    fn retain(&mut self, session: Option<Arc<Session>>, failure: TerminalError) {
        let id = self.id.clone();
        self.phase = Phase::Retained(Retained { id, session, failure, reported: false });
    }
}

impl Opening {
    /// The first cause wins.
    fn lose(&mut self, why: &TerminalError) {
        if self.lost.is_none() {
            self.lost = Some(why.clone());
            self.cancel.cancel(why.to_string());
        }
    }
}

impl Phase {
    /// The name it takes. A failed rollback was never seen by anybody, so it holds none.
    fn name(&self) -> Option<&str> {
        match self {
            Self::Opening(opening) => opening.name.as_deref(),
            Self::Open(session) => session.name.as_deref(),
            Self::Retained(_) => None,
        }
    }
}
