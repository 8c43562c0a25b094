//! Asking a scripted server through the provider.

#![allow(dead_code, reason = "each test binary uses a part")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a helper of a test fails it as the test would"
)]

use std::net::SocketAddr;

use futures_util::StreamExt as _;
use model::{Message, ModelAdapter as _, ModelError, ModelEvent, ModelRequest};
use model_openai::{Config, OpenAi};
use serde_json::json;
use testkit::guarded;

/// The key that every test uses.
pub(crate) const KEY: &str = "sk-9f8e7d6c5b4a";

/// A configuration for the server there, with pauses that are hardly any.
pub(crate) fn config(address: SocketAddr) -> Config {
    let written = json!({
        "baseUrl": format!("http://{address}/v1"), "model": "tiny", "retryDelayMs": 1,
        "maxRetries": 2,
    });
    serde_json::from_value(written).unwrap()
}

pub(crate) fn provider(config: &Config) -> OpenAi {
    let variable = |name: &str| (name == "DEEPSEEK_API_KEY").then(|| KEY.to_owned());
    OpenAi::new(config, variable).unwrap()
}

pub(crate) fn question() -> ModelRequest {
    let content = "What is there?".to_owned();
    let messages = vec![Message::User { content }];
    ModelRequest { system: "Be brief.".to_owned(), messages, tools: Vec::new() }
}

/// All that came of a request.
#[derive(Debug)]
pub(crate) struct Told {
    /// Without the attempts that failed.
    pub(crate) events: Vec<ModelEvent>,
    /// Why they failed.
    pub(crate) retries: Vec<String>,
    pub(crate) error: Option<ModelError>,
}

impl Told {
    pub(crate) fn text(&self) -> String {
        let texts = self.events.iter().filter_map(|event| match event {
            ModelEvent::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// Code and text of the error, with the server's address as `SERVER`.
    pub(crate) fn failure(&self, address: SocketAddr) -> (&'static str, String) {
        let error = self.error.as_ref().expect("an error");
        (error.code(), error.to_string().replace(&address.to_string(), "SERVER"))
    }
}

pub(crate) async fn ask(config: &Config) -> Told {
    ask_for(config, question()).await
}

pub(crate) async fn ask_for(config: &Config, request: ModelRequest) -> Told {
    let mut reply = provider(config).reply(request);
    let mut told = Told { events: Vec::new(), retries: Vec::new(), error: None };
    guarded("the reply", async {
        while let Some(event) = reply.next().await {
            assert!(told.error.is_none(), "an event after the error");
            match event {
                Ok(ModelEvent::Retry { reason, .. }) => {
                    assert!(told.events.is_empty(), "tried again after something was told");
                    told.retries.push(reason);
                }
                Ok(event) => told.events.push(event),
                Err(error) => told.error = Some(error),
            }
        }
    })
    .await;
    told
}
