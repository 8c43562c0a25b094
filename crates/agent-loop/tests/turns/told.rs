//! A model that says what the test tells it, and keeps what it was asked.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex},
};

use dsh_core::{Ctx, Deps, Plugin, Provided, async_trait, lock};
use futures_util::{StreamExt as _, stream};
use model::{
    EndReason, Model, ModelAdapter, ModelError, ModelEvent, ModelRequest, Reply, ToolRequest,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Clones are the same model.
#[derive(Clone, Default)]
pub(crate) struct Told(Arc<State>);

#[derive(Default)]
struct State {
    replies: Mutex<VecDeque<Vec<Act>>>,
    requests: Mutex<Vec<ModelRequest>>,
    asked: tokio::sync::watch::Sender<usize>,
}

#[derive(Clone)]
enum Act {
    Say(ModelEvent),
    Fail(ModelError),
    Hang,
}

static MODELS: Mutex<BTreeMap<String, Told>> = Mutex::new(BTreeMap::new());

pub(crate) fn call(id: &str, name: &str, arguments: &str) -> ToolRequest {
    ToolRequest { id: id.into(), name: name.into(), arguments: arguments.into() }
}

impl Told {
    pub(crate) fn named(name: &str) -> Self {
        lock(&MODELS).entry(name.to_owned()).or_default().clone()
    }

    fn reply(&self, acts: Vec<Act>) -> &Self {
        lock(&self.0.replies).push_back(acts);
        self
    }

    /// The next reply.
    pub(crate) fn says(&self, text: &str) -> &Self {
        self.ends(text, EndReason::Stop)
    }

    pub(crate) fn ends(&self, text: &str, reason: EndReason) -> &Self {
        self.reply(vec![
            Act::Say(ModelEvent::Text(text.to_owned())),
            Act::Say(ModelEvent::End(reason)),
        ])
    }

    pub(crate) fn calls(&self, calls: &[ToolRequest]) -> &Self {
        self.says_and_calls("", calls)
    }

    pub(crate) fn says_and_calls(&self, text: &str, calls: &[ToolRequest]) -> &Self {
        let text = Some(text).filter(|it| !it.is_empty());
        let text = text.map(|it| ModelEvent::Text(it.to_owned()));
        let calls = calls.iter().map(|it| ModelEvent::ToolCall(it.clone()));
        let end = ModelEvent::End(EndReason::ToolCalls);
        self.reply(text.into_iter().chain(calls).chain([end]).map(Act::Say).collect())
    }

    /// The next reply has calls and ends for this reason.
    pub(crate) fn calls_and_ends(&self, calls: &[ToolRequest], reason: EndReason) -> &Self {
        let calls = calls.iter().map(|it| ModelEvent::ToolCall(it.clone()));
        self.reply(calls.chain([ModelEvent::End(reason)]).map(Act::Say).collect())
    }

    /// The next reply breaks off at once.
    pub(crate) fn breaks(&self, error: ModelError) -> &Self {
        self.reply(vec![Act::Fail(error)])
    }

    /// The next reply breaks off after a text.
    pub(crate) fn fails(&self, text: &str, error: ModelError) -> &Self {
        self.reply(vec![Act::Say(ModelEvent::Text(text.to_owned())), Act::Fail(error)])
    }

    /// The next reply does not go on after a text and a call.
    pub(crate) fn hangs(&self, text: &str, request: ToolRequest) -> &Self {
        let events = [ModelEvent::Text(text.to_owned()), ModelEvent::ToolCall(request)];
        self.reply(events.into_iter().map(Act::Say).chain([Act::Hang]).collect())
    }

    pub(crate) fn requests(&self) -> Vec<ModelRequest> {
        lock(&self.0.requests).clone()
    }

    /// Waits until it was asked that often.
    pub(crate) async fn asked(&self, times: usize) {
        self.0.asked.subscribe().wait_for(|it| *it >= times).await.ok();
    }
}

impl ModelAdapter for Told {
    fn reply(&self, request: ModelRequest) -> Reply {
        lock(&self.0.requests).push(request);
        self.0.asked.send_modify(|it| *it += 1);
        let acts = lock(&self.0.replies).pop_front().unwrap_or_else(|| {
            vec![Act::Fail(ModelError::Unexpected("asked once too often".to_owned()))]
        });
        stream::iter(acts)
            .then(|act| async {
                match act {
                    Act::Say(event) => Ok(event),
                    Act::Fail(error) => Err(error),
                    Act::Hang => std::future::pending().await,
                }
            })
            .boxed()
    }
}

#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Config {
    told: String,
}

struct ToldPlugin;

#[async_trait]
impl Plugin for ToldPlugin {
    const NAME: &'static str = "model-told";
    type Config = Config;
    type Inject = ();
    type Provide = Model;

    async fn setup(_: &Ctx, (): Deps<Self>, config: Config) -> anyhow::Result<Provided<Self>> {
        Ok(Arc::new(Told::named(&config.told)))
    }
}

dsh_core::register_plugin!(ToldPlugin);
