//! A host with a loop, and what happened in it.

use std::sync::{Arc, Mutex};

use agent_loop::{Loop, LoopEvent, LoopObserver, TurnEnd};
use agents::Agent;
use dsh_core::{Cancel, lock};
use model::{Message, ModelError, ToolRequest};
use serde_json::Value;
use testkit::{Script, TestHost, guarded};
use tool_terminal as _;

use crate::told::{Told, call};

/// Everything that could be watched, a line each.
#[derive(Default)]
pub(crate) struct Watched(Mutex<Vec<String>>);

impl LoopObserver for Watched {
    fn event(&self, event: LoopEvent<'_>) {
        let line = match event {
            LoopEvent::Text(text) => format!("text {text}"),
            LoopEvent::Retry { reason, .. } => format!("retry: {reason}"),
            LoopEvent::Trimmed(it) => format!("trimmed {} {}", it.results, it.messages),
            LoopEvent::CallBegan { name, arguments, intent } => {
                format!("call {name} {arguments} {}", serde_json::to_string(&intent).unwrap())
            }
            LoopEvent::CallOutput(text) => format!("output {text:?}"),
            LoopEvent::CallEnded { result, intent } => {
                format!("result {:?} {}", result.text(), intent.is_some())
            }
            LoopEvent::Notice(text) => format!("notice {text}"),
            LoopEvent::Waiting => "waiting".to_owned(),
            _ => return,
        };
        lock(&self.0).push(line);
    }
}

pub(crate) struct Fixture {
    pub(crate) host: TestHost,
    pub(crate) agent: Arc<Agent>,
    pub(crate) script: Script,
    pub(crate) model: Told,
    pub(crate) watched: Arc<Watched>,
    pub(crate) cancel: Cancel,
}

pub(crate) async fn fixture() -> Fixture {
    configured("{}").await
}

/// `config` is the loop's.
pub(crate) async fn configured(config: &str) -> Fixture {
    let script = Script::new();
    booted(&script, config, "").await
}

/// With further rows.
pub(crate) async fn booted(script: &Script, config: &str, more: &str) -> Fixture {
    let name = script.name().to_owned();
    let rows = format!(
        "{more}{}- name: tool-terminal\n- name: model-told\n  config: {{ told: {name} }}\n\
         - name: agent-loop\n  config: {config}\n",
        script.composition()
    );
    let host = TestHost::boot(&rows).await;
    let agent = host.agent("a1");
    let (model, watched) = (Told::named(&name), Arc::default());
    let script = script.clone();
    Fixture { host, agent, script, model, watched, cancel: Cancel::new() }
}

/// A call that opens a session.
pub(crate) fn open(id: &str) -> ToolRequest {
    call(id, "terminal_open", r#"{"type":"scripted"}"#)
}

/// A call that types into the first one.
pub(crate) fn send(id: &str, text: &str) -> ToolRequest {
    let arguments = serde_json::json!({ "sessionId": "pty-1", "text": text });
    call(id, "terminal_send", &arguments.to_string())
}

impl Fixture {
    pub(crate) async fn run(&self) -> Result<TurnEnd, ModelError> {
        let watched = Arc::clone(&self.watched) as Arc<dyn LoopObserver>;
        let running = self.host.service::<Loop>();
        guarded("the run", running.run(&self.agent, "do it", watched, &self.cancel)).await
    }

    pub(crate) fn watched(&self) -> Vec<String> {
        lock(&self.watched.0).clone()
    }

    /// The messages of the last request.
    pub(crate) fn last(&self) -> Vec<Message> {
        self.model.requests().pop().unwrap().messages
    }

    /// The text of the result of a call, as the model was told it.
    pub(crate) fn told(&self, id: &str) -> String {
        let of_call = |it: Message| match it {
            Message::Tool { call_id, content } if call_id == id => Some(content),
            _ => None,
        };
        self.last().into_iter().find_map(of_call).unwrap()
    }

    /// Ends the agent. The events of its log: their types, and all of them.
    pub(crate) async fn log(&self) -> (Vec<String>, Vec<Value>) {
        guarded("the agent's end", self.host.dispose_agent(&self.agent)).await.unwrap();
        let mut folders = vec![self.host.home().to_owned()];
        let mut lines = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    lines.extend(session_log::read_log(&path).unwrap());
                }
            }
        }
        let events = lines.split_off(1);
        (events.iter().map(|it| it["type"].as_str().unwrap().to_owned()).collect(), events)
    }

    pub(crate) async fn end(self) {
        guarded("the host's end", self.host.dispose()).await.unwrap();
    }
}
