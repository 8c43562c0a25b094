//! The plugin trait and its type-erased, link-time registered form.

use std::{
    any::Any,
    marker::PhantomData,
    sync::{Arc, Mutex, RwLock},
};

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use schemars::{JsonSchema, Schema};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::{
    claim::Claim,
    config::{self, ConfigError, Salvaged},
    problem::Place,
    scope::Scope,
    service::{Service, Services},
    unwind::{lock, read, write},
};

/// A unit of composition.
///
/// `Inject` and `Provide` are tuples of service keys. They are the only way to receive or publish
/// a service, so using an undeclared one does not compile:
///
/// ```compile_fail,E0308
/// use dsh_core::{Ctx, Deps, Plugin, Provided, Service, async_trait};
/// struct Clock;
/// impl Service for Clock { type Api = u64; const NAME: &'static str = "clock"; }
///
/// struct Needy;
/// #[async_trait]
/// impl Plugin for Needy {
///     const NAME: &'static str = "needy";
///     type Config = dsh_core::plugin::NoConfig;
///     type Inject = ();
///     type Provide = ();
///     async fn setup(_: &Ctx, (clock,): Deps<Self>, _: Self::Config) -> anyhow::Result<Provided<Self>> {
///         Ok(())
///     }
/// }
/// ```
#[async_trait]
pub trait Plugin: Sized + Send + Sync + 'static {
    /// The name compositions refer to.
    const NAME: &'static str;
    /// Validated configuration. Reject unknown fields and impossible values while deserializing;
    /// serializable so that defaults appear in the schema.
    type Config: DeserializeOwned + Serialize + JsonSchema + Send + 'static;
    /// Required services as `Key`, optional ones as `Option<Key>`.
    type Inject: InjectList;
    /// Published services.
    type Provide: ProvideList;

    /// Checks of the configuration that go beyond one value, such as one bound that must not exceed
    /// another. Runs before anything starts.
    ///
    /// A value that is wrong by itself has its default here, and what is said about its key is not
    /// reported: say with [`ConfigError::and_about`] which other keys a problem rests on. Where a
    /// required key is missing or wrong, there is nothing to check.
    fn check(_config: &Self::Config) -> Vec<ConfigError> {
        Vec::new()
    }

    /// What this configuration contributes to registries, or needs there, as far as other rows are
    /// concerned. Compared before anything starts.
    fn claims(_config: &Self::Config) -> Vec<Claim> {
        Vec::new()
    }

    /// Starts the plugin. Contributions go into [`Ctx::scope`]; on error that scope is disposed.
    async fn setup(
        ctx: &Ctx,
        deps: Deps<Self>,
        config: Self::Config,
    ) -> anyhow::Result<Provided<Self>>;
}

/// Handles of the services `P` injects.
pub type Deps<P> = <<P as Plugin>::Inject as InjectList>::Handles;
/// Handles of the services `P` provides.
pub type Provided<P> = <<P as Plugin>::Provide as ProvideList>::Handles;

/// The configuration of a plugin that has none.
#[derive(Debug, Default, serde::Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoConfig {}

/// What a plugin sees of the running application.
pub struct Ctx {
    pub(crate) row: Row,
    pub(crate) plugin: &'static str,
    pub(crate) declared: Vec<Declared>,
    pub(crate) scope: Scope,
    pub(crate) services: Arc<RwLock<Services>>,
    pub(crate) checks: Arc<Mutex<Vec<Check>>>,
}

/// The row a plugin is started for.
#[derive(Clone)]
pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) place: Place,
}

/// A startup check and the row that asked for it.
pub(crate) struct Check {
    pub(crate) row: Row,
    pub(crate) run: Box<dyn FnOnce() -> BoxFuture<'static, anyhow::Result<()>> + Send>,
}

/// A service was read through [`Ctx::get`] without being declared.
#[derive(Debug, thiserror::Error)]
#[error(
    "plugin `{plugin}` used service `{service}` without declaring it in `Inject` (declared: {})",
    list(.declared)
)]
pub struct Undeclared {
    plugin: &'static str,
    service: &'static str,
    declared: Vec<&'static str>,
}

fn list(names: &[&'static str]) -> String {
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

impl Ctx {
    /// Id of the composition row being started.
    pub fn row(&self) -> &str {
        &self.row.id
    }

    /// The plugin's own scope.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Runs `check` once every row has been set up, when all contributions are in place.
    ///
    /// A failing check fails the start, exactly like a failing `setup`. All checks are run, so that
    /// all failures are reported.
    pub fn when_started<F, Fut>(&self, check: F)
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let check = Check { row: self.row.clone(), run: Box::new(move || Box::pin(check())) };
        lock(&self.checks).push(check);
    }

    /// Dynamic lookup for generic helpers; prefer the typed handles passed to `setup`.
    pub fn get<K: Service>(&self) -> Result<Option<Arc<K::Api>>, Undeclared> {
        if self.declared.iter().any(|it| it.name == K::NAME) {
            return Ok(read(&self.services).get::<K>());
        }
        Err(Undeclared {
            plugin: self.plugin,
            service: K::NAME,
            declared: self.declared.iter().map(|it| it.name).collect(),
        })
    }
}

/// One declared dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declared {
    /// Service name.
    pub name: &'static str,
    /// Whether the plugin can start without it.
    pub required: bool,
}

/// One element of [`Plugin::Inject`].
pub trait Inject {
    /// `Arc<Api>` or `Option<Arc<Api>>`.
    type Handle: Send;
    #[doc(hidden)]
    const DECLARED: Declared;
    #[doc(hidden)]
    #[expect(private_interfaces, reason = "only the crate resolves dependencies")]
    fn resolve(services: &Arc<RwLock<Services>>) -> Option<Self::Handle>;
}

impl<K: Service> Inject for K {
    type Handle = Arc<K::Api>;
    const DECLARED: Declared = Declared { name: K::NAME, required: true };
    #[expect(private_interfaces, reason = "only the crate resolves dependencies")]
    fn resolve(services: &Arc<RwLock<Services>>) -> Option<Self::Handle> {
        read(services).get::<K>()
    }
}

impl<K: Service> Inject for Option<K> {
    type Handle = Lookup<K>;
    const DECLARED: Declared = Declared { name: K::NAME, required: false };
    #[expect(private_interfaces, reason = "only the crate resolves dependencies")]
    fn resolve(services: &Arc<RwLock<Services>>) -> Option<Self::Handle> {
        Some(Lookup { services: Arc::clone(services), key: PhantomData })
    }
}

/// An optional service, looked up anew at each call: it may appear after the plugin that wants it
/// and vanish before it.
pub struct Lookup<K> {
    services: Arc<RwLock<Services>>,
    key: PhantomData<fn() -> K>,
}

impl<K> Clone for Lookup<K> {
    fn clone(&self) -> Self {
        Self { services: Arc::clone(&self.services), key: PhantomData }
    }
}

impl<K: Service> Lookup<K> {
    /// The service, if a row provides it right now.
    pub fn get(&self) -> Option<Arc<K::Api>> {
        read(&self.services).get::<K>()
    }
}

/// A tuple of injected keys.
pub trait InjectList {
    /// The tuple of handles.
    type Handles: Send;
    #[doc(hidden)]
    fn declared() -> Vec<Declared>;
    #[doc(hidden)]
    #[expect(private_interfaces, reason = "only the crate resolves dependencies")]
    fn resolve(services: &Arc<RwLock<Services>>) -> Option<Self::Handles>;
}

/// The keys a plugin publishes: `()`, one key, or a tuple of keys.
pub trait ProvideList {
    /// The handles `setup` must return.
    type Handles: Send;
    #[doc(hidden)]
    fn names() -> Vec<&'static str>;
    #[doc(hidden)]
    #[expect(private_interfaces, reason = "only the crate publishes services")]
    fn publish(handles: Self::Handles, services: &mut Services);
}

impl<K: Service> ProvideList for K {
    type Handles = Arc<K::Api>;
    fn names() -> Vec<&'static str> {
        vec![K::NAME]
    }
    #[expect(private_interfaces, reason = "only the crate publishes services")]
    fn publish(handle: Self::Handles, services: &mut Services) {
        services.insert::<K>(handle);
    }
}

macro_rules! tuples {
    ($($name:ident $index:tt),*) => {
        impl<$($name: Inject),*> InjectList for ($($name,)*) {
            type Handles = ($($name::Handle,)*);
            fn declared() -> Vec<Declared> { vec![$($name::DECLARED),*] }
            #[expect(private_interfaces, reason = "only the crate resolves dependencies")]
            fn resolve(_services: &Arc<RwLock<Services>>) -> Option<Self::Handles> {
                Some(($($name::resolve(_services)?,)*))
            }
        }
        impl<$($name: Service),*> ProvideList for ($($name,)*) {
            type Handles = ($(Arc<$name::Api>,)*);
            fn names() -> Vec<&'static str> { vec![$($name::NAME),*] }
            #[expect(private_interfaces, reason = "only the crate publishes services")]
            fn publish(_handles: Self::Handles, _services: &mut Services) {
                $(_services.insert::<$name>(_handles.$index);)*
            }
        }
    };
}
tuples!();
tuples!(A 0);
tuples!(A 0, B 1);
tuples!(A 0, B 1, C 2);
tuples!(A 0, B 1, C 2, D 3);
tuples!(A 0, B 1, C 2, D 3, E 4);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5);

type AnyConfig = Box<dyn Any + Send>;
/// From the configuration as written, and the keys that are left out of it for a fault that has been
/// reported. An error may therefore hold no problem of its own.
type Parse = fn(Map<String, Value>, &[String]) -> Result<Parsed, Vec<ConfigError>>;

/// A configuration without fault.
pub(crate) struct Parsed {
    pub(crate) config: AnyConfig,
    pub(crate) claims: Vec<Claim>,
}

type StartFuture<'a> = BoxFuture<'a, anyhow::Result<()>>;

/// Type-erased plugin, collected at link time. Catalogs are made from these.
pub struct PluginEntry {
    /// [`Plugin::NAME`].
    pub name: &'static str,
    /// Declared dependencies.
    pub inject: fn() -> Vec<Declared>,
    /// Published service names.
    pub provide: fn() -> Vec<&'static str>,
    /// JSON Schema of the configuration, defaults included.
    pub config_schema: fn() -> Schema,
    /// The configuration with every default filled in, from one as written, or all that is wrong
    /// with it.
    pub fill_defaults: fn(Map<String, Value>) -> Result<Value, Vec<ConfigError>>,
    pub(crate) parse: Parse,
    pub(crate) start: for<'a> fn(&'a Ctx, AnyConfig) -> StartFuture<'a>,
}

inventory::collect!(PluginEntry);

impl PluginEntry {
    /// Erases `P`.
    pub const fn of<P: Plugin>() -> Self {
        Self {
            name: P::NAME,
            inject: P::Inject::declared,
            provide: P::Provide::names,
            config_schema: || {
                schemars::generate::SchemaSettings::default()
                    .into_generator()
                    .into_root_schema_for::<P::Config>()
            },
            fill_defaults: |written| {
                serde_json::to_value(parse::<P>(written, &[])?)
                    .map_err(|error| vec![ConfigError::new("", error.to_string())])
            },
            parse: |written, left_out| {
                let config = parse::<P>(written, left_out)?;
                Ok(Parsed { claims: P::claims(&config), config: Box::new(config) })
            },
            start: start::<P>,
        }
    }

    /// Every linked plugin, sorted by name because link order is unspecified.
    pub fn linked() -> Vec<&'static Self> {
        let mut all: Vec<_> = inventory::iter::<Self>.into_iter().collect();
        all.sort_by_key(|entry| entry.name);
        all
    }
}

fn parse<P: Plugin>(
    written: Map<String, Value>,
    left_out: &[String],
) -> Result<P::Config, Vec<ConfigError>> {
    let Salvaged { value, mut errors, removed } = config::deserialize(written, left_out);
    if let Some(config) = &value {
        let found = P::check(config).into_iter();
        errors.extend(found.filter(|error| !error.rests_on(&removed)));
    }
    match value {
        Some(config) if errors.is_empty() => Ok(config),
        _ => Err(errors),
    }
}

fn start<P: Plugin>(ctx: &Ctx, config: AnyConfig) -> StartFuture<'_> {
    Box::pin(async move {
        let config = config.downcast::<P::Config>().map_err(|_| {
            anyhow::anyhow!("bug: configuration of `{}` has a foreign type", P::NAME)
        })?;
        let deps = P::Inject::resolve(&ctx.services).ok_or_else(|| {
            anyhow::anyhow!("bug: `{}` was started before a service it requires", P::NAME)
        })?;
        let provided = P::setup(ctx, deps, *config).await?;
        let mut services = write(&ctx.services);
        P::Provide::publish(provided, &mut services);
        Ok(())
    })
}
