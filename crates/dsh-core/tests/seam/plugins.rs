//! A small family of plugins: a registry of voices, providers, consumers, and some that misbehave.

use std::{
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
};

use dsh_core::{
    Claim, Composition, ConfigError, Ctx, Deps, Lookup, Plan, Plugin, PluginEntry, Provided,
    ScopedMap, Service, Vocabulary, async_trait, plugin::NoConfig, register_plugin,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

thread_local! {
    /// What happened, in order. Each test runs on its own thread, cleanups included.
    static LOG: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

pub(crate) fn log(event: impl Into<String>) {
    LOG.with_borrow_mut(|log| log.push(event.into()));
}

pub(crate) fn take_log() -> Vec<String> {
    LOG.with_borrow_mut(std::mem::take)
}

pub(crate) const VOCABULARY: Vocabulary = Vocabulary {
    prefix: "@deepseek-ai/dsh-",
    aliases: &[("voice-local", "voice"), ("choir", "voices")],
    not_provided: &["printer", "concertos"],
};

pub(crate) fn parse(yaml: &str) -> Composition {
    Composition::parse("dsh.yml", yaml, &VOCABULARY).unwrap()
}

pub(crate) fn resolve(composition: &Composition) -> Result<Plan, String> {
    Plan::resolve(composition, &PluginEntry::linked()).map_err(|error| error.to_string())
}

pub(crate) fn plan(yaml: &str) -> Plan {
    resolve(&parse(yaml)).unwrap()
}

/// The registry.
pub(crate) struct Voices;
impl Service for Voices {
    type Api = ScopedMap<String>;
    const NAME: &'static str = "voices";
}

macro_rules! voices_plugin {
    ($plugin:ident, $name:literal) => {
        struct $plugin;
        #[async_trait]
        impl Plugin for $plugin {
            const NAME: &'static str = $name;
            type Config = NoConfig;
            type Inject = ();
            type Provide = Voices;
            async fn setup(
                ctx: &Ctx,
                (): Deps<Self>,
                _: NoConfig,
            ) -> anyhow::Result<Provided<Self>> {
                follow(ctx)?;
                Ok(Arc::new(ScopedMap::new("voice")))
            }
        }
        register_plugin!($plugin);
    };
}
voices_plugin!(VoicesPlugin, "voices");
voices_plugin!(OtherVoices, "voices-other");

/// Logs the start of a row, and its end.
fn follow(ctx: &Ctx) -> anyhow::Result<()> {
    let row = ctx.row().to_owned();
    log(format!("start {row}"));
    ctx.scope().defer("say goodbye", move || {
        log(format!("stop {row}"));
        async { Ok(()) }
    })?;
    Ok(())
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct VoiceConfig {
    text: String,
    range: Range,
    /// Claimed: no two voices may sing one.
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<String>,
}
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Range {
    low: u8,
    high: u8,
}
impl Default for VoiceConfig {
    fn default() -> Self {
        Self { text: "la".to_owned(), range: Range::default(), part: None }
    }
}
impl Default for Range {
    fn default() -> Self {
        Self { low: 1, high: 9 }
    }
}

/// Contributes a voice under its row's id.
struct Voice;
#[async_trait]
impl Plugin for Voice {
    const NAME: &'static str = "voice";
    type Config = VoiceConfig;
    type Inject = (Voices,);
    type Provide = ();
    fn check(config: &VoiceConfig) -> Vec<ConfigError> {
        let Range { low, high } = config.range;
        let message = format!("{low} is above `range.high` ({high}); lower it");
        let error = ConfigError::new("range.low", message).and_about("range.high");
        if low > high { vec![error] } else { Vec::new() }
    }
    fn claims(config: &VoiceConfig) -> Vec<Claim> {
        config.part.iter().map(|it| Claim::takes("part", it, "part")).collect()
    }
    async fn setup(
        ctx: &Ctx,
        (voices,): Deps<Self>,
        config: VoiceConfig,
    ) -> anyhow::Result<Provided<Self>> {
        follow(ctx)?;
        voices.contribute(ctx.scope(), ctx.row(), config.text)?;
        Ok(())
    }
}
register_plugin!(Voice);

/// A counter that plugins can do without.
pub(crate) struct Applause;
impl Service for Applause {
    type Api = AtomicU32;
    const NAME: &'static str = "applause";
}

struct Audience;
#[async_trait]
impl Plugin for Audience {
    const NAME: &'static str = "audience";
    type Config = NoConfig;
    type Inject = ();
    type Provide = Applause;
    async fn setup(ctx: &Ctx, (): Deps<Self>, _: NoConfig) -> anyhow::Result<Provided<Self>> {
        follow(ctx)?;
        Ok(Arc::new(AtomicU32::new(0)))
    }
}
register_plugin!(Audience);

/// What [`Concert`] provides: asks for applause each time.
pub(crate) struct Show;
impl Service for Show {
    type Api = dyn Fn() -> String + Send + Sync;
    const NAME: &'static str = "show";
}

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct ConcertConfig {
    encore: bool,
    /// Of no use without a voice that has a part.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    lead: bool,
}

/// A front end: needs voices by the time everything has started.
struct Concert;
#[async_trait]
impl Plugin for Concert {
    const NAME: &'static str = "concert";
    type Config = ConcertConfig;
    type Inject = (Voices, Option<Applause>);
    type Provide = (Show,);
    fn claims(config: &ConcertConfig) -> Vec<Claim> {
        let claim = Claim::needs("part", "lead", "nobody has a part: give a voice one");
        config.lead.then_some(claim).into_iter().collect()
    }
    async fn setup(
        ctx: &Ctx,
        (voices, applause): Deps<Self>,
        config: ConcertConfig,
    ) -> anyhow::Result<Provided<Self>> {
        follow(ctx)?;
        let checked = Arc::clone(&voices);
        ctx.when_started(move || async move {
            anyhow::ensure!(!checked.names().is_empty(), "no voice is registered");
            Ok(())
        });
        let applause: Lookup<Applause> = applause;
        let encore = if config.encore { " encore" } else { "" };
        Ok((Arc::new(move || {
            let heard = applause.get().map_or_else(
                || "silence".to_owned(),
                |it| format!("applause {}", it.fetch_add(1, SeqCst)),
            );
            format!("{}: {heard}{encore}", voices.values().join(" "))
        }),))
    }
}
register_plugin!(Concert);

struct Ping;
impl Service for Ping {
    type Api = u8;
    const NAME: &'static str = "ping";
}
struct Pong;
impl Service for Pong {
    type Api = u8;
    const NAME: &'static str = "pong";
}
macro_rules! pair {
    ($plugin:ident, $name:literal, $inject:ty, $provide:ident) => {
        struct $plugin;
        #[async_trait]
        impl Plugin for $plugin {
            const NAME: &'static str = $name;
            type Config = NoConfig;
            type Inject = ($inject,);
            type Provide = $provide;
            async fn setup(_: &Ctx, _: Deps<Self>, _: NoConfig) -> anyhow::Result<Provided<Self>> {
                Ok(Arc::new(0))
            }
        }
        register_plugin!($plugin);
    };
}
pair!(PingPlugin, "ping", Pong, Ping);
pair!(PongPlugin, "pong", Ping, Pong);
pair!(PolitePing, "ping-polite", Option<Pong>, Ping);

/// Does what its configuration says.
#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct TroubleConfig {
    /// `error`, `panic`, `undeclared`, `hang`, `check`, `check-panic` or `cleanup`.
    kind: String,
}
struct Trouble;
#[async_trait]
impl Plugin for Trouble {
    const NAME: &'static str = "trouble";
    type Config = TroubleConfig;
    type Inject = (Option<Applause>,);
    type Provide = ();
    async fn setup(
        ctx: &Ctx,
        _: Deps<Self>,
        config: TroubleConfig,
    ) -> anyhow::Result<Provided<Self>> {
        follow(ctx)?;
        anyhow::ensure!(ctx.get::<Applause>()?.is_none(), "applause for trouble");
        match config.kind.as_str() {
            "error" => anyhow::bail!("no disk"),
            "panic" => panic!("bug in setup"),
            "undeclared" => drop(ctx.get::<Voices>()?),
            "hang" => std::future::pending::<()>().await,
            "check" => ctx.when_started(|| async { anyhow::bail!("not ready") }),
            "check-panic" => ctx.when_started(|| async { panic!("bug in check") }),
            "cleanup" => {
                let mut runs = 0;
                ctx.scope().defer("stubborn", move || {
                    runs += 1;
                    log(format!("attempt {runs}"));
                    let done = runs >= 2;
                    async move {
                        anyhow::ensure!(done, "pid 7 is still there");
                        Ok(())
                    }
                })?;
            }
            other => anyhow::bail!("unknown kind `{other}`"),
        }
        Ok(())
    }
}
register_plugin!(Trouble);

/// Has a required key, unlike the others.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TicketConfig {
    price: u32,
}
struct Tickets;
#[async_trait]
impl Plugin for Tickets {
    const NAME: &'static str = "tickets";
    type Config = TicketConfig;
    type Inject = ();
    type Provide = ();
    async fn setup(
        _: &Ctx,
        (): Deps<Self>,
        config: TicketConfig,
    ) -> anyhow::Result<Provided<Self>> {
        log(format!("price {}", config.price));
        Ok(())
    }
}
register_plugin!(Tickets);
