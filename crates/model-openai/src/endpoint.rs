//! Where requests go, which model is asked, and the key.
//!
//! Guarantee: a key goes to the API it belongs to. Where the host is known to belong to one key,
//! only that key is looked for.

use model::ModelError;
use reqwest::{
    Url,
    header::{AUTHORIZATION, HeaderMap, HeaderValue},
};
use secrecy::{ExposeSecret as _, SecretString};

use crate::Config;

/// An API whose key, address and model are known.
struct Known {
    key_env: &'static str,
    base_url: &'static str,
    model: &'static str,
    /// Sent with that model alone.
    reasoning_effort: Option<&'static str>,
}

const KNOWN: [Known; 2] = [
    Known {
        key_env: "DEEPSEEK_API_KEY",
        base_url: "https://api.deepseek.com",
        model: "deepseek-flash",
        reasoning_effort: None,
    },
    Known {
        key_env: "OPENAI_API_KEY",
        base_url: "https://api.openai.com/v1",
        model: "gpt-6-luna",
        // With any other effort, also its own default, this API refuses tools.
        reasoning_effort: Some("none"),
    },
];

/// What is asked, and where.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    /// Without a slash at the end.
    pub(crate) base_url: String,
    pub(crate) model: String,
    pub(crate) reasoning_effort: Option<String>,
}

/// A key that fits into a header. Its debug print does not show it.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    /// The variable it came from.
    variable: String,
    secret: SecretString,
}

/// Resolves what the configuration leaves open. `variable` reads the environment.
pub(crate) fn resolve(
    config: &Config,
    variable: impl Fn(&str) -> Option<String>,
) -> (Endpoint, Result<Key, ModelError>) {
    let owner = config.base_url.as_deref().and_then(|url| KNOWN.iter().find(|it| it.serves(url)));
    let names: Vec<&str> = match (&config.api_key_env, owner) {
        (Some(name), _) => vec![name.as_str()],
        (None, Some(known)) => vec![known.key_env],
        (None, None) => KNOWN.iter().map(|it| it.key_env).collect(),
    };
    let found = names.iter().find_map(|name| {
        let text = variable(name)?;
        let text = text.trim();
        (!text.is_empty()).then(|| (*name, text.to_owned()))
    });
    let of_key = found.as_ref().and_then(|(name, _)| KNOWN.iter().find(|it| it.key_env == *name));
    let known = owner.or(of_key).unwrap_or(&KNOWN[0]);
    let base_url = config.base_url.as_deref().unwrap_or(known.base_url).trim_end_matches('/');
    let all_known = config.model.is_none() && known.serves(base_url);
    let endpoint = Endpoint {
        base_url: base_url.strip_suffix(PATH).unwrap_or(base_url).to_owned(),
        model: config.model.clone().unwrap_or_else(|| known.model.to_owned()),
        reasoning_effort: config
            .reasoning_effort
            .clone()
            .or_else(|| known.reasoning_effort.filter(|_| all_known).map(str::to_owned)),
    };
    let key = match found {
        Some((name, text)) => Key::new(name, text),
        None => Err(missing(&names, &endpoint.base_url)),
    };
    (endpoint, key)
}

const PATH: &str = "/chat/completions";

impl Known {
    fn serves(&self, base_url: &str) -> bool {
        host(base_url).is_some_and(|it| Some(it) == host(self.base_url))
    }
}

fn host(url: &str) -> Option<String> {
    Url::parse(url).ok()?.host_str().map(str::to_owned)
}

fn missing(names: &[&str], base_url: &str) -> ModelError {
    let (are, it) = match names {
        [name] => (format!("{name} is not set"), (*name).to_owned()),
        _ => (format!("neither {} is set", names.join(" nor ")), names.join(" or ")),
    };
    ModelError::MissingKey(format!(
        "there is no key for {base_url}: {are}; put your key into the environment variable {it}, or \
         name another one as `apiKeyEnv` of the row `model-openai` (for a server that wants no key, \
         any text will do)"
    ))
}

impl Endpoint {
    /// The address that requests are sent to.
    pub(crate) fn url(&self) -> String {
        format!("{}{PATH}", self.base_url)
    }

    /// Whether the server is on this machine, where no proxy is asked.
    pub(crate) fn is_local(&self) -> bool {
        let host = host(&self.base_url).unwrap_or_default();
        let address = host.trim_start_matches('[').trim_end_matches(']').parse();
        host == "localhost" || address.is_ok_and(|it: std::net::IpAddr| it.is_loopback())
    }

    /// Whether this API wants what the model thought back even where that is nothing.
    pub(crate) fn wants_reasoning(&self) -> bool {
        KNOWN[0].serves(&self.base_url)
    }
}

impl Key {
    fn new(variable: &str, text: String) -> Result<Self, ModelError> {
        let key = Self { variable: variable.to_owned(), secret: SecretString::from(text) };
        if key.header().is_none() {
            return Err(ModelError::MissingKey(format!(
                "the key in {variable} holds characters that no header can carry, such as a line \
                 break; copy it once more"
            )));
        }
        Ok(key)
    }

    pub(crate) fn variable(&self) -> &str {
        &self.variable
    }

    pub(crate) fn secret(&self) -> &SecretString {
        &self.secret
    }

    /// The header that carries it, marked so that nothing prints it.
    pub(crate) fn headers(&self) -> HeaderMap {
        self.header().map(|value| (AUTHORIZATION, value)).into_iter().collect()
    }

    fn header(&self) -> Option<HeaderValue> {
        let text = format!("Bearer {}", self.secret.expose_secret());
        let mut value = HeaderValue::from_str(&text).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// `text` without the key. What is shorter than any key, for a server that wants none, stays:
    /// common words contain it.
    pub(crate) fn hide(&self, text: &str) -> String {
        const SHORTEST: usize = 8;
        let secret = self.secret.expose_secret();
        if secret.len() < SHORTEST { text.to_owned() } else { text.replace(secret, "[key]") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(config: &Config, set: &[(&str, &str)]) -> (Endpoint, Result<Key, ModelError>) {
        resolve(config, |name| {
            set.iter().find(|(it, _)| *it == name).map(|(_, value)| (*value).to_owned())
        })
    }

    fn with_url(url: &str) -> Config {
        Config { base_url: Some(url.to_owned()), ..Config::default() }
    }

    const BOTH: [(&str, &str); 2] =
        [("OPENAI_API_KEY", "sk-openai"), ("DEEPSEEK_API_KEY", "sk-deepseek")];

    #[test]
    fn the_key_decides_what_is_left_open() {
        let none = Config::default();
        let local = with_url("http://127.0.0.1:8000/v1/");
        let openai = with_url("https://api.openai.com/v1/chat/completions");
        let named = Config { api_key_env: Some("MINE".to_owned()), ..local.clone() };
        let both = BOTH.as_slice();
        for (config, set, expected) in [
            (&none, both, "DEEPSEEK_API_KEY deepseek-flash at https://api.deepseek.com None"),
            (
                &none,
                &BOTH[..1],
                "OPENAI_API_KEY gpt-6-luna at https://api.openai.com/v1 Some(\"none\")",
            ),
            (&local, both, "DEEPSEEK_API_KEY deepseek-flash at http://127.0.0.1:8000/v1 None"),
            (&local, &BOTH[..1], "OPENAI_API_KEY gpt-6-luna at http://127.0.0.1:8000/v1 None"),
            (
                &openai,
                both,
                "OPENAI_API_KEY gpt-6-luna at https://api.openai.com/v1 Some(\"none\")",
            ),
            (&named, &[("MINE", " k\n")], "MINE deepseek-flash at http://127.0.0.1:8000/v1 None"),
        ] {
            let (endpoint, key) = resolved(config, set);
            let Endpoint { base_url, model, reasoning_effort } = endpoint;
            let said =
                format!("{} {model} at {base_url} {reasoning_effort:?}", key.unwrap().variable);
            assert_eq!(said, expected);
        }
    }

    #[test]
    fn a_model_of_ones_own_is_asked_without_an_effort_of_ours() {
        let model = Some("gpt-4o".to_owned());
        let (endpoint, _) = resolved(&Config { model, ..Config::default() }, &BOTH[..1]);
        assert_eq!(endpoint.reasoning_effort, None);
        let reasoning_effort = Some("low".to_owned());
        let (endpoint, _) = resolved(&Config { reasoning_effort, ..Config::default() }, &BOTH);
        assert_eq!(endpoint.reasoning_effort.as_deref(), Some("low"));
    }

    #[test]
    fn a_key_goes_to_no_other_known_api() {
        let (_, key) = resolved(&with_url("https://api.deepseek.com/v1"), &BOTH[..1]);
        let error = key.unwrap_err();
        assert_eq!(error.code(), "MISSING_KEY");
        assert!(
            error.to_string().starts_with(
                "there is no key for https://api.deepseek.com/v1: DEEPSEEK_API_KEY is not set; put"
            ),
            "{error}"
        );
    }

    #[test]
    fn a_missing_key_names_both_variables() {
        for set in [&[][..], &[("DEEPSEEK_API_KEY", " "), ("OPENAI_API_KEY", "")]] {
            let error = resolved(&Config::default(), set).1.unwrap_err();
            assert_eq!(
                error.to_string(),
                "there is no key for https://api.deepseek.com: neither DEEPSEEK_API_KEY nor \
                 OPENAI_API_KEY is set; put your key into the environment variable DEEPSEEK_API_KEY \
                 or OPENAI_API_KEY, or name another one as `apiKeyEnv` of the row `model-openai` (for \
                 a server that wants no key, any text will do)"
            );
        }
    }

    #[test]
    fn a_key_that_no_header_carries_is_told_without_it() {
        let error = resolved(&Config::default(), &[("OPENAI_API_KEY", "sk-one\nsk-two")]).1;
        let error = error.unwrap_err();
        assert_eq!(error.code(), "MISSING_KEY");
        assert!(error.to_string().contains("OPENAI_API_KEY"), "{error}");
        assert!(!error.to_string().contains("sk-"), "{error}");
    }

    #[test]
    fn no_print_shows_the_key() {
        let (endpoint, key) = resolved(&Config::default(), &BOTH);
        let key = key.unwrap();
        let printed = format!("{endpoint:?} {key:?} {:?} {:#?}", key.headers(), key);
        assert!(!printed.contains("sk-deepseek"), "{printed}");
        assert_eq!(key.hide("no sk-deepseek here"), "no [key] here");
        let (_, key) = resolved(&Config::default(), &[("OPENAI_API_KEY", "none")]);
        assert_eq!(key.unwrap().hide("there is none"), "there is none");
    }

    #[test]
    fn servers_on_this_machine_are_local() {
        for (url, local) in [
            ("http://localhost:1/v1", true),
            ("http://127.0.0.2/v1", true),
            ("http://[::1]:8000/v1", true),
            ("http://10.0.0.1/v1", false),
            ("https://localhost.example.org", false),
        ] {
            assert_eq!(resolved(&with_url(url), &BOTH).0.is_local(), local, "{url}");
        }
    }
}
