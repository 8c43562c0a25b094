//! The ctx seam: typed services, plugins, scopes, and composition.
//!
//! A plugin is an async function from the services it declares in [`Plugin::Inject`] to the
//! services it declares in [`Plugin::Provide`]. Everything it contributes along the way is tied
//! to its [`Scope`] and is undone, in reverse order and awaited, when that scope is disposed.
//!
//! Reading order: [`service`] → [`scope`] → [`plugin`] → [`composition`] → [`plan`] (and what it can
//! find wrong: [`problem`]) → [`app`]. Apart from these stand what plugins share: [`cancel`],
//! [`number`] and [`unwind`].
//!
//! A host goes from text to a running application in four steps: parse, layer, resolve, start.
//!
//! ```
//! use std::sync::Arc;
//! use dsh_core::{
//!     App, Composition, Ctx, Deps, Plan, Plugin, PluginEntry, Provided, Service, Vocabulary,
//!     async_trait, plugin::NoConfig, register_plugin,
//! };
//!
//! /// The service: a key, and what its consumers receive.
//! struct Clock;
//! impl Service for Clock {
//!     type Api = u64;
//!     const NAME: &'static str = "clock";
//! }
//!
//! /// Its provider.
//! struct FixedClock;
//! #[async_trait]
//! impl Plugin for FixedClock {
//!     const NAME: &'static str = "fixed-clock";
//!     type Config = NoConfig;
//!     type Inject = ();
//!     type Provide = Clock;
//!     async fn setup(_: &Ctx, (): Deps<Self>, _: NoConfig) -> anyhow::Result<Provided<Self>> {
//!         Ok(Arc::new(42))
//!     }
//! }
//! register_plugin!(FixedClock);
//!
//! /// A front end that needs it.
//! struct Display;
//! #[async_trait]
//! impl Plugin for Display {
//!     const NAME: &'static str = "display";
//!     type Config = NoConfig;
//!     type Inject = (Clock,);
//!     type Provide = ();
//!     async fn setup(ctx: &Ctx, (clock,): Deps<Self>, _: NoConfig) -> anyhow::Result<Provided<Self>> {
//!         assert_eq!(*clock, 42);
//!         ctx.scope().defer("switch the display off", || async { Ok(()) })?;
//!         Ok(())
//!     }
//! }
//! register_plugin!(Display);
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let vocabulary = Vocabulary {
//!     prefix: "@example/host-",
//!     aliases: &[("screen", "display")],
//!     not_provided: &["printer"],
//! };
//! let linked = PluginEntry::linked();
//! let text = "- name: '@example/host-screen'\n- name: printer\n  disabled: true\n";
//! let composition = Composition::parse("demo.yml", text, &vocabulary)?
//!     .with_base(&["fixed-clock"], &linked)
//!     .with_front_end("display", &["web"]);
//! let plan = Plan::resolve(&composition, &linked)?;
//! assert_eq!(plan.order(), ["fixed-clock", "screen"]);
//!
//! let app = App::start(plan).await?;
//! assert_eq!(app.service::<Clock>().as_deref(), Some(&42));
//! app.dispose().await?;
//! # anyhow::Ok(())
//! # })?;
//! # anyhow::Ok(())
//! ```

pub mod app;
pub mod cancel;
pub mod claim;
pub mod composition;
pub mod config;
mod dump;
pub mod finding;
pub mod home;
pub mod number;
mod order;
pub mod overlay;
pub mod plan;
pub mod plugin;
pub mod problem;
pub mod scope;
pub mod scoped_map;
pub mod service;
mod shape;
pub mod unwind;
mod yaml;

pub use app::App;
pub use async_trait::async_trait;
pub use cancel::Cancel;
pub use claim::Claim;
pub use composition::{Composition, Vocabulary};
pub use config::ConfigError;
pub use finding::{Finding, Grade};
pub use number::SafeInteger;
pub use overlay::Overlay;
pub use plan::Plan;
pub use plugin::{Ctx, Deps, Lookup, Plugin, PluginEntry, Provided};
pub use scope::Scope;
pub use scoped_map::ScopedMap;
pub use service::Service;
pub use unwind::{lock, panic_text};

/// Re-exports used by [`register_plugin!`]; not part of the public API.
#[doc(hidden)]
pub mod __private {
    pub use inventory;
}

/// Registers a plugin type at link time.
///
/// The registering crate must also be referenced by the final binary (`use my_plugin as _;`),
/// otherwise the linker never sees it.
#[macro_export]
macro_rules! register_plugin {
    ($plugin:ty) => {
        $crate::__private::inventory::submit! { $crate::PluginEntry::of::<$plugin>() }
    };
}
