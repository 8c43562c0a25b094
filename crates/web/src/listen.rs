//! Where to listen: the rules of addresses, certificates, and the port.
//!
//! Guarantee: another address than a loopback one is listened on only with TLS, or where the user
//! said that it may be without.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    str::FromStr,
    sync::Arc,
};

use dsh_core::ConfigError;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem, pem::PemObject as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::{
    access::{Access, Place, Token, TokenError},
    door::Door,
};

/// Where to listen, and who is let in.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Listening {
    /// Address and port, such as `127.0.0.1:7171`; port 0 is a free one.
    pub listen: Address,
    /// File of one line that is the token. Without it one is made at each start, and printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    /// Speak TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// Listen on an address that others can reach also without TLS: they can read the token then.
    pub insecure_listen: bool,
    /// Other origins by which browsers reach the server, such as `https://dsh.example.org` behind
    /// a proxy.
    #[schemars(inner(regex(pattern = "^https?://[^/]+$")))]
    pub origins: Vec<String>,
}

/// Files for TLS, in PEM.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Tls {
    /// The certificate, and those that vouch for it.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// An address to listen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", extend("pattern" = r"^(localhost|[0-9.]+|\[[0-9A-Fa-f:.%]+\]):[0-9]+$"))]
pub struct Address(SocketAddr);

impl Default for Address {
    fn default() -> Self {
        Self(SocketAddr::from((Ipv4Addr::LOCALHOST, 7171)))
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numeric = match text.strip_prefix("localhost:") {
            Some(port) => format!("127.0.0.1:{port}"),
            None => text.to_owned(),
        };
        let address = numeric.parse().map_err(|_| {
            format!("{text:?} is no address: give one with a port, such as 127.0.0.1:7171")
        })?;
        Ok(Self(address))
    }
}

impl TryFrom<String> for Address {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Address> for String {
    fn from(address: Address) -> Self {
        address.0.to_string()
    }
}

/// The server cannot be where it should be.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields are named after the placeholders in the message")]
pub enum ListenError {
    #[error(
        "{0} can be reached from other machines, which could read the token on its way: use TLS \
         (`--tls-cert` and `--tls-key`), or say `--insecure-listen` if nobody else can listen in"
    )]
    Insecure(SocketAddr),
    #[error(
        "{0} is in use by another program: end that, or give `--listen` another port (0 for a free \
         one)"
    )]
    InUse(SocketAddr),
    #[error("cannot listen on {address}: {source}; give `--listen` an address of this machine")]
    Refused { address: SocketAddr, source: io::Error },
    #[error("cannot read the {what} {}: {source}", path.display())]
    Pem { what: &'static str, path: PathBuf, source: pem::Error },
    #[error("the certificate {} and the key {} do not work: {source}", certificate.display(), key.display())]
    Certificate { certificate: PathBuf, key: PathBuf, source: rustls::Error },
    #[error(transparent)]
    Token(#[from] TokenError),
}

impl Listening {
    /// What can be said to be wrong before anything starts.
    pub fn problems(&self) -> Vec<ConfigError> {
        let address = self.listen.0;
        let insecure = (!self.is_secure()).then(|| {
            ConfigError::new("listen", ListenError::Insecure(address).to_string())
                .and_about("tls")
                .and_about("insecureListen")
        });
        let malformed = self.origins.iter().enumerate().filter(|(_, it)| !is_origin(it));
        let malformed = malformed.map(|(at, it)| {
            let message = format!(
                "{it:?} is no origin: write scheme and host, such as https://dsh.example.org"
            );
            ConfigError::new(format!("origins[{at}]"), message)
        });
        insecure.into_iter().chain(malformed).collect()
    }

    fn is_secure(&self) -> bool {
        self.listen.0.ip().is_loopback() || self.tls.is_some() || self.insecure_listen
    }

    /// Reads the token and the certificate, and takes the port.
    pub async fn open(&self) -> Result<Door, ListenError> {
        let asked = self.listen.0;
        if !self.is_secure() {
            return Err(ListenError::Insecure(asked));
        }
        let token = match &self.token_file {
            Some(path) => Token::from_file(path)?,
            None => Token::random()?,
        };
        let tls = self.tls.as_ref().map(Tls::acceptor).transpose()?;
        let refused = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => ListenError::InUse(asked),
            _ => ListenError::Refused { address: asked, source },
        };
        let listener = TcpListener::bind(asked).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let place = Place { address, tls: tls.is_some(), origins: self.origins.clone() };
        let access = Access::new(token.clone(), place.clone())?;
        Ok(Door { listener, tls, place, access, token, token_file: self.token_file.clone() })
    }
}

impl Tls {
    fn acceptor(&self) -> Result<TlsAcceptor, ListenError> {
        let unread = |what, path: &PathBuf| {
            let path = path.clone();
            move |source| ListenError::Pem { what, path, source }
        };
        let certificates: Result<Vec<_>, _> =
            CertificateDer::pem_file_iter(&self.certificate).and_then(Iterator::collect);
        let certificates = certificates.map_err(unread("certificate", &self.certificate))?;
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(unread("key", &self.key))?;
        let unfit = |source| ListenError::Certificate {
            certificate: self.certificate.clone(),
            key: self.key.clone(),
            source,
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(unfit)?;
        let mut config =
            config.with_no_client_auth().with_single_cert(certificates, key).map_err(unfit)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

/// Whether this is how a browser would write an origin.
fn is_origin(text: &str) -> bool {
    let Some((scheme, authority)) = text.split_once("://") else { return false };
    let parsed = authority.parse::<axum::http::uri::Authority>();
    matches!(scheme, "http" | "https")
        && !authority.contains('@')
        && authority.to_ascii_lowercase() == authority
        && parsed.is_ok()
}

/// An address by which a browser of this machine finds the server.
pub(crate) fn reachable(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => (Ipv4Addr::LOCALHOST, address.port()).into(),
        IpAddr::V6(ip) if ip.is_unspecified() => {
            (std::net::Ipv6Addr::LOCALHOST, address.port()).into()
        }
        _ => address,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn problems(config: Value) -> Vec<String> {
        let listening: Listening = serde_json::from_value(config).unwrap();
        listening.problems().into_iter().map(|it| it.path).collect()
    }

    #[test]
    fn other_addresses_want_tls_or_a_word() {
        let none: [&str; 0] = [];
        for listen in ["127.0.0.1:0", "127.9.9.9:1", "[::1]:7171", "localhost:80"] {
            assert_eq!(problems(json!({ "listen": listen })), none, "{listen}");
        }
        for listen in ["0.0.0.0:0", "[::]:1", "192.0.2.1:7171"] {
            assert_eq!(problems(json!({ "listen": listen })), ["listen"], "{listen}");
            let tls = json!({ "certificate": "c", "key": "k" });
            assert_eq!(problems(json!({ "listen": listen, "tls": tls })), none);
            assert_eq!(problems(json!({ "listen": listen, "insecureListen": true })), none);
        }
        for listen in ["", "7171", "example.org:80", "127.0.0.1", "localhost:x"] {
            let error = listen.parse::<Address>().unwrap_err();
            assert!(error.ends_with("such as 127.0.0.1:7171"), "{error}");
        }
    }

    #[test]
    fn origins_are_written_as_browsers_do() {
        let wrong = ["dsh.example.org", "https://", "https://a/b", "ftp://a", "https://u@a"];
        for origin in wrong {
            assert_eq!(problems(json!({ "origins": ["http://a:1", origin] })), ["origins[1]"]);
        }
    }
}
