//! The provider: a reply, in as many attempts as it takes.

use std::{collections::HashSet, sync::Arc, time::Duration};

use async_stream::{stream, try_stream};
use backon::{BackoffBuilder as _, ExponentialBuilder};
use futures_util::{Stream, StreamExt as _, stream};
use model::{Message, ModelAdapter, ModelError, ModelEvent, ModelRequest, Reply};
use serde_json::Value;

use crate::{
    assembly::Assembly,
    config::Config,
    endpoint,
    failure::{Account, Again, Failure},
    request,
    transport::Transport,
};

/// Longest pause before another attempt, unless the server asks for a longer one.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// How long the cost may come after the end of a reply.
const COST: Duration = Duration::from_secs(2);

/// A model behind the chat completions API.
pub struct OpenAi {
    /// Or why there can be none.
    transport: Result<Arc<Transport>, ModelError>,
    pauses: ExponentialBuilder,
}

impl OpenAi {
    /// Asks nobody yet. `variable` reads the environment.
    ///
    /// # Errors
    /// TLS cannot be set up. A missing key is none here: [`ModelAdapter::ready`] tells it.
    pub fn new(config: &Config, variable: impl Fn(&str) -> Option<String>) -> anyhow::Result<Self> {
        let (endpoint, key) = endpoint::resolve(config, variable);
        let transport = match key {
            Ok(key) => {
                let account = Account::new(config, endpoint, key);
                Ok(Arc::new(Transport::new(config, account)?))
            }
            Err(error) => Err(error),
        };
        let pauses = ExponentialBuilder::new()
            .with_min_delay(config.retry_delay())
            .with_max_delay(LONGEST_PAUSE.max(config.retry_delay()))
            .with_max_times(config.max_retries.as_len())
            .with_jitter();
        Ok(Self { transport, pauses })
    }
}

impl ModelAdapter for OpenAi {
    fn ready(&self) -> Result<(), ModelError> {
        self.transport.as_ref().map(drop).map_err(Clone::clone)
    }

    fn reply(&self, request: ModelRequest) -> Reply {
        let transport = match &self.transport {
            Ok(transport) => Arc::clone(transport),
            Err(error) => return stream::iter([Err(error.clone())]).boxed(),
        };
        let mut pauses = self.pauses.build();
        stream! {
            let body = match request::body(&transport.account.endpoint, &request) {
                Ok(body) => body,
                Err(error) => {
                    yield Err(ModelError::Refused(format!("the request cannot be written: {error}")));
                    return;
                }
            };
            let used = ids(&request);
            loop {
                let attempt = attempt(&transport, &body, used.clone());
                tokio::pin!(attempt);
                let mut told = false;
                let failure = loop {
                    match attempt.next().await {
                        Some(Ok(event)) => {
                            told = true;
                            yield Ok(event);
                        }
                        Some(Err(failure)) => break failure,
                        None => return,
                    }
                };
                // Another reply would not continue what was told of this one.
                let pause = if told { None } else { pause(failure.again, &mut pauses) };
                let Some(delay) = pause else {
                    yield Err(failure.error);
                    return;
                };
                yield Ok(ModelEvent::Retry { reason: failure.to_string(), delay });
                tokio::time::sleep(delay).await;
            }
        }
        .boxed()
    }
}

/// How long to wait before the next attempt, if there is one.
fn pause(again: Again, pauses: &mut impl Iterator<Item = Duration>) -> Option<Duration> {
    match again {
        Again::Never => None,
        Again::Soon => pauses.next(),
        Again::After(delay) => pauses.next().map(|_| delay),
    }
}

/// One request and its reply.
fn attempt(
    transport: &Transport,
    body: &Value,
    used: HashSet<String>,
) -> impl Stream<Item = Result<ModelEvent, Failure>> {
    let account = &transport.account;
    try_stream! {
        let mut chunks = transport.open(body).await?;
        let mut assembly = Assembly::default();
        let mut until = None;
        loop {
            let next = match until {
                None => chunks.next().await,
                // After the end only the cost is still to come, which is worth neither a long wait
                // nor a failure.
                Some(until) => tokio::time::timeout_at(until, chunks.next()).await.ok().flatten(),
            };
            let Some(chunk) = next else { break };
            if chunk.is_err() && assembly.ended().is_some() {
                break;
            }
            let chunk = chunk?;
            if let Some(error) = &chunk.error {
                Err(account.failed_midway(error))?;
            }
            let text =
                assembly.push(chunk).map_err(|too_long| account.malformed(&too_long.to_string()))?;
            if let Some(text) = text {
                yield ModelEvent::Text(text);
            }
            if assembly.ended().is_some() {
                until.get_or_insert_with(|| tokio::time::Instant::now() + COST);
            }
        }
        match assembly.ended() {
            None => Err(account.cut("it ended without a reason"))?,
            // DeepSeek's word for a reply that it gave up.
            Some("insufficient_system_resource") => Err(account.cut("the server is overloaded"))?,
            Some(_) => {
                for event in assembly.finish(used) {
                    yield event;
                }
            }
        }
    }
}

/// The calls of a conversation.
fn ids(request: &ModelRequest) -> HashSet<String> {
    let calls = request.messages.iter().filter_map(|message| match message {
        Message::Assistant { calls, .. } => Some(calls),
        _ => None,
    });
    calls.flatten().map(|call| call.id.clone()).collect()
}
