//! `job_list`: the jobs that the caller may see.

use dsh_core::Cancel;
use jobs::JobSnapshot;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tools::{ToolError, ToolKind, simple::Simple, text::Keep};

use crate::{Caller, Host, schema, text};

const DESCRIPTION: &str = "List your background jobs, one a line: id, kind, status, what it does. \
Finished ones stay listed for a while.";

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {}

pub(crate) struct List;

impl Simple for List {
    const NAME: &'static str = "job_list";
    const DESCRIPTION: &'static str = DESCRIPTION;
    const KIND: ToolKind = ToolKind::Read;
    const KEEP: Keep = Keep::Tail;
    type Host = Host;
    type Args = Args;
    type Value = Vec<JobSnapshot>;

    fn output(_: &Host) -> Value {
        schema::list()
    }

    async fn run(
        host: &Host,
        Caller(caller): &Caller,
        Args {}: Args,
        _: &Cancel,
    ) -> Result<Vec<JobSnapshot>, ToolError> {
        let bounded = |job| {
            let cap = text::cap(&job, host.cap);
            text::shorten(job, cap)
        };
        Ok(host.jobs.list(caller.as_ref()).into_iter().map(bounded).collect())
    }

    fn text(_: &Value, jobs: &Vec<JobSnapshot>, _: usize) -> String {
        text::list(jobs)
    }
}
