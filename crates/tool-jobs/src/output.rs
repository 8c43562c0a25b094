//! `job_output`: what a job has put out since it was last read, and how far it is.

use dsh_core::Cancel;
use jobs::{JobReading, JobSnapshot};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use tools::{ToolError, ToolKind, simple::Simple, text::Keep};

use crate::{
    Caller, Host,
    arguments::{job_id, refused, timeout},
    schema, text,
};

const DESCRIPTION: &str = "Read what a background job has put out since it was last read, and how \
far it is. With wait it returns when the job has finished, at the latest after timeout_ms; the job \
goes on whatever happens to the wait.\n\
[status: running] it is at work; \
[status: stopping] its end was asked for and it is still at work; \
[status: completed, ...] [status: killed, ...] [status: failed, ...] it is over, and how. \
Lines in brackets above it tell more where there is more to tell, such as [exit: 0]. \
[output truncated] the oldest part is missing.";

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// Id that a background call returned.
    job_id: String,
    /// Wait until the job has finished (default false).
    wait: Option<bool>,
    /// Longest wait in milliseconds, from 1.
    timeout_ms: Option<Number>,
}

/// The structured value.
#[derive(Serialize, Deserialize)]
pub(crate) struct OutputValue {
    /// The whole model text.
    text: String,
    job: JobSnapshot,
}

impl OutputValue {
    fn new(JobReading { mut job, output }: JobReading, most: usize) -> Self {
        let cap = text::cap(&job, most);
        let text = text::output(&job, &output, cap);
        text::shorten_label(&mut job, cap - text.len());
        Self { text, job }
    }
}

pub(crate) struct Output;

impl Simple for Output {
    const NAME: &'static str = "job_output";
    const DESCRIPTION: &'static str = DESCRIPTION;
    const KIND: ToolKind = ToolKind::Read;
    const KEEP: Keep = Keep::Tail;
    type Host = Host;
    type Args = Args;
    type Value = OutputValue;

    fn output(_: &Host) -> Value {
        schema::output()
    }

    async fn run(
        host: &Host,
        Caller(caller): &Caller,
        args: Args,
        cancel: &Cancel,
    ) -> Result<OutputValue, ToolError> {
        job_id(&args.job_id)?;
        let asked = args.timeout_ms.as_ref().map(timeout).transpose()?;
        if args.wait == Some(true) {
            let most = asked.unwrap_or(host.wait).min(host.longest_wait);
            host.jobs.wait(caller.as_ref(), &args.job_id, most, cancel).await.map_err(refused)?;
        }
        let reading =
            host.jobs.read(caller.as_ref(), &args.job_id, cancel).await.map_err(refused)?;
        Ok(OutputValue::new(reading, host.cap))
    }

    fn text(_: &Value, value: &OutputValue, _: usize) -> String {
        value.text.clone()
    }
}
