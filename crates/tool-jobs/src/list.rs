//! `job_list`: the jobs that the caller may see.

use std::sync::Arc;

use agents::Agent;
use dsh_core::Cancel;
use jobs::JobSnapshot;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tools::{ToolError, ToolKind, text::Keep};

use crate::{Host, schema, simple::Simple, text};

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
    type Args = Args;
    type Value = Vec<JobSnapshot>;

    fn output() -> Value {
        schema::list()
    }

    async fn run(
        host: &Host,
        caller: Option<&Arc<Agent>>,
        Args {}: Args,
        _: &Cancel,
    ) -> Result<Vec<JobSnapshot>, ToolError> {
        let bounded = |job| {
            let cap = text::cap(&job);
            text::shorten(job, cap)
        };
        Ok(host.jobs.list(caller).into_iter().map(bounded).collect())
    }

    fn text(jobs: &Vec<JobSnapshot>) -> String {
        text::list(jobs)
    }
}
