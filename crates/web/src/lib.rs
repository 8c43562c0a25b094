//! `dsh web`: a page that shows agents at work, and lets a person step in.
//!
//! Guarantees:
//! - nothing is served without the token but the question for it; see [`access`];
//! - what a terminal showed reaches a browser as data, and nothing from elsewhere is loaded or run;
//! - whoever watches and does not read costs a session nothing;
//! - every connection has ended when [`WebServer::serve`] returns.
//!
//! Reading order: [`listen`] and [`door`] (the port), [`access`] (who may ask), `server` (what there is
//! to ask for), `world`, `cards`, `logs` and `past` (what is told), `request` and `live` (how).

pub mod access;
mod assets;
mod cards;
pub mod door;
pub mod listen;
mod live;
mod logs;
mod past;
mod plugin;
mod request;
mod server;
mod world;

pub use access::{Access, Place, Token};
pub use door::Door;
pub use listen::{Address, ListenError, Listening, Tls};
pub use plugin::WebPlugin;
pub use server::WebServer;

use dsh_core::Service;

/// Service key of the server.
pub struct Web;

impl Service for Web {
    type Api = WebServer;
    const NAME: &'static str = "web";
}
