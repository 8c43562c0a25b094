//! Configuration of the row.

use std::time::Duration;

use dsh_core::{ConfigError, SafeInteger};
use reqwest::Url;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One `model-openai` row. What is left out of the first four keys follows from the key that is
/// found: `DEEPSEEK_API_KEY` stands for DeepSeek, `OPENAI_API_KEY` for OpenAI.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Config {
    /// Where the API is: the part before `/chat/completions`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The model, as the server calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The environment variable that holds the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// How much the model thinks, in the server's words, such as `none`, `low` or `high`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
    /// How long a connection may take, in milliseconds.
    pub connect_timeout_ms: SafeInteger<1>,
    /// The longest silence of the server, before its answer and within it, in milliseconds.
    pub idle_timeout_ms: SafeInteger<1>,
    /// How often a request that failed is sent again.
    pub max_retries: SafeInteger<0>,
    /// The pause before it is sent again the first time, in milliseconds. Each further one is twice
    /// as long, at most 8 seconds, and up to its own length is added at random. A server that says
    /// how long to wait is obeyed up to a minute.
    pub retry_delay_ms: SafeInteger<1>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            base_url: None,
            model: None,
            api_key_env: None,
            reasoning_effort: None,
            connect_timeout_ms: SafeInteger::of::<10_000>(),
            idle_timeout_ms: SafeInteger::of::<180_000>(),
            max_retries: SafeInteger::of::<4>(),
            retry_delay_ms: SafeInteger::of::<500>(),
        }
    }
}

impl Config {
    pub(crate) fn problems(&self) -> Vec<ConfigError> {
        let texts = [
            ("model", &self.model),
            ("apiKeyEnv", &self.api_key_env),
            ("reasoningEffort", &self.reasoning_effort),
        ];
        let empty = texts.into_iter().filter(|(_, text)| text.as_deref() == Some(""));
        let empty =
            empty.map(|(key, _)| ConfigError::new(key, "must not be empty; leave it out instead"));
        let url = self.base_url.as_deref().and_then(|url| wrong_with(url).map(|it| (url, it)));
        let url = url.map(|(url, wrong)| {
            let message =
                format!("{wrong}; write something like https://api.deepseek.com, {}", got(url));
            ConfigError::new("baseUrl", message)
        });
        url.into_iter().chain(empty).collect()
    }

    pub(crate) fn connect_timeout(&self) -> Duration {
        Duration::from_millis(self.connect_timeout_ms.get())
    }

    pub(crate) fn idle_timeout(&self) -> Duration {
        Duration::from_millis(self.idle_timeout_ms.get())
    }

    pub(crate) fn retry_delay(&self) -> Duration {
        Duration::from_millis(self.retry_delay_ms.get())
    }
}

fn wrong_with(url: &str) -> Option<&'static str> {
    let Ok(url) = Url::parse(url) else {
        return Some("is no absolute URL");
    };
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        Some("must begin with https:// or http:// and a host")
    } else if !url.username().is_empty() || url.password().is_some() || url.path().contains('@') {
        // A password with a slash is read as a path.
        Some(
            "must not hold a user or password; the key comes from the environment (the @ of a path \
             is written %40)",
        )
    } else if url.query().is_some() || url.fragment().is_some() {
        Some("must not hold a query or fragment")
    } else {
        None
    }
}

/// What was written, without what may be a secret. It is no URL as it should be, so nothing tells
/// for certain where in it a password stands.
fn got(url: &str) -> String {
    if url.contains('@') {
        return "not what there is, which is not shown since it may hold a password (it has an @)"
            .to_owned();
    }
    format!("got `{}`", url.split(['?', '#']).next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(config: &Config) -> Vec<String> {
        config.problems().into_iter().map(|it| format!("{}: {}", it.path, it.message)).collect()
    }

    #[test]
    fn urls_of_every_kind() {
        for url in ["https://api.deepseek.com", "http://localhost:11434/v1/", "http://[::1]:8000"] {
            let config = Config { base_url: Some(url.to_owned()), ..Config::default() };
            assert!(said(&config).is_empty(), "{url}");
        }
        for (url, wrong) in [
            ("", "is no absolute URL"),
            ("api.deepseek.com", "is no absolute URL"),
            ("localhost:8000", "must begin with https://"),
            ("ftp://host/", "must begin with https://"),
            ("https://me:secret@host/v1", "must not hold a user"),
            ("https://host/v1?api-key=secret", "must not hold a query"),
            // Not written as they should be, but read as with the two slashes.
            ("https:/me:secret@host", "must not hold a user"),
            ("https:me:secret@host", "must not hold a user"),
            ("https:/host?api-key=secret", "must not hold a query"),
            ("me:secret@host", "must begin with https://"),
            ("host?api-key=secret", "is no absolute URL"),
            ("https://me:x/secret@host", "is no absolute URL"),
            ("https://me:/secret@host", "must not hold a user"),
            ("https://me:5/secret@host", "must not hold a user"),
            ("https://me:?secret@host", "must not hold a query"),
        ] {
            let config = Config { base_url: Some(url.to_owned()), ..Config::default() };
            let said = said(&config);
            assert_eq!(said.len(), 1, "{url}: {said:?}");
            assert!(said[0].starts_with(&format!("baseUrl: {wrong}")), "{url}: {said:?}");
            assert!(!said[0].contains("secret"), "{said:?}");
        }
    }

    #[test]
    fn empty_texts_are_no_names() {
        let empty = Some(String::new());
        let config = Config {
            model: empty.clone(),
            api_key_env: empty.clone(),
            reasoning_effort: empty,
            ..Config::default()
        };
        assert_eq!(said(&config).len(), 3);
    }
}
