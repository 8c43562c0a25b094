//! The ctx seam: typed services, plugins, scopes, and composition.
//!
//! A plugin is an async function from the services it declares in [`Plugin::Inject`] to the
//! services it declares in [`Plugin::Provide`]. Everything it contributes along the way is tied
//! to its [`Scope`] and is undone, in reverse order and awaited, when that scope is disposed.
//!
//! Reading order: [`service`] → [`scope`] → [`plugin`] → [`composition`] → [`plan`] → [`app`].

pub mod cancel;

pub mod service;

pub mod scope;

pub mod plugin;

pub mod scoped_map;

pub mod composition;

pub mod plan;

pub mod app;

pub use app::App;
pub use async_trait::async_trait;
pub use cancel::Cancel;
pub use composition::Composition;
pub use plan::Plan;
pub use plugin::{Ctx, Deps, Lookup, Plugin, PluginEntry, Provided};
pub use scope::Scope;
pub use scoped_map::ScopedMap;
pub use service::Service;

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
