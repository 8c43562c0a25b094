//! `job_kill`: asks for the end of a job.

use dsh_core::Cancel;
use jobs::JobSnapshot;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tools::{ToolError, ToolKind, simple::Simple, text::Keep};

use crate::{
    Caller, Host,
    arguments::{job_id, refused},
    schema, text,
};

const DESCRIPTION: &str = "Ask a background job to end, as Ctrl-C would. Returns at once; \
job_output with wait tells when it is over, and until then whether it still runs.";

/// What the work hears when no reason is given.
const REASON: &str = "job_kill";

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// Id that a background call returned.
    job_id: String,
    /// Why, for the record.
    reason: Option<String>,
}

/// The structured value.
#[derive(Serialize, Deserialize)]
pub(crate) struct KillValue {
    outcome: Outcome,
    job: JobSnapshot,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Outcome {
    CancellationRequested,
    AlreadyFinished,
}

impl KillValue {
    fn new(kill: jobs::Kill, most: usize) -> Self {
        let (outcome, job) = match kill {
            jobs::Kill::Requested(job) => (Outcome::CancellationRequested, job),
            jobs::Kill::AlreadyFinished(job) => (Outcome::AlreadyFinished, job),
        };
        let cap = text::cap(&job, most);
        let mut value = Self { outcome, job: text::shorten(job, cap) };
        if value.text().len() > cap {
            // The text is made of the value alone, so what does not fit must not be there.
            value.job.detail = None;
        }
        value
    }

    fn text(&self) -> String {
        match self.outcome {
            Outcome::CancellationRequested => text::kill_requested(&self.job),
            Outcome::AlreadyFinished => text::already_finished(&self.job),
        }
    }
}

pub(crate) struct Kill;

impl Simple for Kill {
    const NAME: &'static str = "job_kill";
    const DESCRIPTION: &'static str = DESCRIPTION;
    const KIND: ToolKind = ToolKind::Execute;
    const KEEP: Keep = Keep::Head;
    type Host = Host;
    type Args = Args;
    type Value = KillValue;

    fn output(_: &Host) -> Value {
        schema::kill()
    }

    async fn run(
        host: &Host,
        Caller(caller): &Caller,
        args: Args,
        _: &Cancel,
    ) -> Result<KillValue, ToolError> {
        job_id(&args.job_id)?;
        let reason = args.reason.as_deref().unwrap_or(REASON);
        host.jobs
            .kill(caller.as_ref(), &args.job_id, reason)
            .map_err(refused)
            .map(|kill| KillValue::new(kill, host.cap))
    }

    fn text(_: &Value, value: &KillValue, _: usize) -> String {
        value.text()
    }
}
