//! The builder of contexts.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use anfora_ir::{RewriteOptions, Rewrites};

use super::{Log, PassContext, Settings, Shared};
use crate::config::{ConfigError, ConfigValue};
use crate::error::in_own_words;
use crate::instrument::Instrument;
use crate::names::UnknownName;
use crate::parallel::{WORTH_SHARING, Workers};
use crate::registry::PassRegistry;
use crate::sink::Sink;
use crate::verification::Verification;

/// The reason why a context cannot be built.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ContextError {
    /// A required or disabled pass does not exist.
    #[error(transparent)]
    Pass(#[from] UnknownName),
    /// A setting does not exist, or does not take the value.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

in_own_words!(ContextError);

/// A setting that a context is given: a key and a value, or a text of the form `KEY=VALUE`.
pub(super) enum Given {
    Value(String, ConfigValue),
    Text(String),
}

/// A builder of a [`PassContext`].
pub struct PassContextBuilder {
    pub(super) settings: Settings,
    pub(super) config: Vec<Given>,
    /// The number of leading entries of `config` that come from the context of which this builder
    /// is derived.
    pub(super) inherited: usize,
    pub(super) instruments: Vec<Arc<dyn Instrument>>,
    /// The requests to the ledger of rewrites, without those of the instruments.
    pub(super) rewrites: Option<RewriteOptions>,
}

impl PassContextBuilder {
    pub(super) fn new() -> PassContextBuilder {
        let settings = Settings {
            opt_level: 2,
            required: Vec::new(),
            disabled: Vec::new(),
            known: Vec::new(),
            registry: None,
            workers: Arc::new(Workers::new(1)),
            worth_sharing: WORTH_SHARING,
            output: Arc::new(Mutex::new(Sink::new(io::stderr()))),
            verification: Verification::default(),
            rewrites: Rewrites::default(),
        };
        PassContextBuilder { settings, config: Vec::new(), inherited: 0, instruments: Vec::new(), rewrites: None }
    }

    /// Sets the registry of passes and settings. The default is the default registry of the process
    /// ([`set_default_registry`](crate::set_default_registry)).
    #[must_use]
    pub fn registry(mut self, registry: Arc<PassRegistry>) -> Self {
        self.settings.registry = Some(registry);
        self
    }

    /// Sets the level. Passes of a higher level do not run. The default is 2.
    #[must_use]
    pub fn opt_level(mut self, level: u8) -> Self {
        self.settings.opt_level = level;
        self
    }

    /// Sets the number of threads over which passes over functions are distributed, at most
    /// [`MAX_THREADS`](crate::MAX_THREADS). With 0, it is the number of threads that the machine
    /// runs in parallel. The default is 1: a pass then runs on the thread that called it. The
    /// result is the same for every number of threads, byte for byte. The threads are started when
    /// there is work for them, and end with the last of the contexts that share them. If a pass
    /// itself runs on a thread of a pool, its functions are not distributed again.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.settings.workers = Arc::new(Workers::new(threads));
        self
    }

    /// Sets the least number of nodes of a module whose functions are distributed over threads. For
    /// smaller modules, waking the threads takes longer than it saves. The default is 8192.
    #[must_use]
    pub fn worth_sharing(mut self, nodes: usize) -> Self {
        self.settings.worth_sharing = nodes;
        self
    }

    /// Sets the output of the pass `PrintIR`. The default is standard error.
    #[must_use]
    pub fn print_to(mut self, to: impl Write + Send + 'static) -> Self {
        self.settings.output = Arc::new(Mutex::new(Sink::new(to)));
        self
    }

    /// Selects the passes after which functions are verified. By default, builds with debug
    /// assertions verify each function after every pass that changed it, and other builds verify
    /// nothing. Turn verification off to measure passes in a build with debug assertions.
    #[must_use]
    pub fn verification(mut self, verification: Verification) -> Self {
        self.settings.verification = verification;
        self
    }

    /// Stops after this number of rewrites, counted over all passes that run under the context. The
    /// program is then as it was after the first `limit` rewrites without a limit, so a binary
    /// search over the limit finds the first wrong rewrite. A pass that counts no rewrites itself
    /// counts one for each function that it changes; a pass over modules counts one. Once the limit
    /// is reached, no further pass runs. Function passes run on one thread.
    ///
    /// Contexts that are [derived](PassContext::derive) from this one count on.
    ///
    /// ```
    /// use anfora_ir::{FunctionBuilder, Module, OpRegistry};
    /// use anfora_manager::{ModulePass, Pass, PassContext, SkipReason};
    /// # use std::sync::Arc;
    ///
    /// let make = |name: &'static str| {
    ///     ModulePass::new(name, 0, move |module, _| {
    ///         let mut f = FunctionBuilder::new(module, name);
    ///         let unit = f.tuple(&[]);
    ///         f.finish(unit)?;
    ///         Ok(())
    ///     })
    /// };
    /// let cx = PassContext::builder().limit_rewrites(1).build()?;
    /// let mut module = Module::new(Arc::new(OpRegistry::new()));
    /// assert!(make("first").apply(&mut module, &cx)?.is_changed());
    /// assert!(make("second").apply(&mut module, &cx)?.is_skipped());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn limit_rewrites(self, limit: u64) -> Self {
        self.rewrites(RewriteOptions { limit: Some(limit), ..RewriteOptions::default() })
    }

    /// Counts the rewrites of all passes that run under the context, and limits and records them as
    /// the options say; see [`PassContextBuilder::limit_rewrites`]. The records are in
    /// [`PassContext::rewrites`]. Several requests, and those of the instruments, are granted
    /// together.
    #[must_use]
    pub fn rewrites(mut self, options: RewriteOptions) -> Self {
        self.rewrites = Some(match self.rewrites {
            Some(earlier) => earlier.with(options),
            None => options,
        });
        self
    }

    /// Makes this pass run whatever its level is, without asking instruments. A name that is not in
    /// the registry has to be [known](PassContextBuilder::knowing).
    ///
    /// Cost: linear in the text.
    #[must_use]
    pub fn require(mut self, pass: impl Into<String>) -> Self {
        self.settings.required.push(pass.into());
        self
    }

    /// Disables this pass. A name that is not in the registry has to be
    /// [known](PassContextBuilder::knowing).
    ///
    /// Cost: linear in the text.
    #[must_use]
    pub fn disable(mut self, pass: impl Into<String>) -> Self {
        self.settings.disabled.push(pass.into());
        self
    }

    /// Makes the name of an unregistered pass known, so that the pass can be required or disabled.
    ///
    /// Cost: linear in the text.
    #[must_use]
    pub fn knowing(mut self, pass: impl Into<String>) -> Self {
        self.settings.known.push(pass.into());
        self
    }

    /// Sets a setting to a value.
    ///
    /// Cost: linear in the text.
    #[must_use]
    pub fn config(mut self, key: impl Into<String>, value: impl Into<ConfigValue>) -> Self {
        self.config.push(Given::Value(key.into(), value.into()));
        self
    }

    /// Sets a setting from a text of the form `KEY=VALUE`.
    ///
    /// Cost: linear in the text.
    #[must_use]
    pub fn config_text(mut self, text: impl Into<String>) -> Self {
        self.config.push(Given::Text(text.into()));
        self
    }

    /// Adds an instrument after those already added.
    #[must_use]
    pub fn instrument(mut self, instrument: Arc<dyn Instrument>) -> Self {
        self.instruments.push(instrument);
        self
    }

    /// Removes all instruments, for example those of the context that this one derives from.
    #[must_use]
    pub fn without_instruments(mut self) -> Self {
        self.instruments.clear();
        self
    }

    /// Builds the context.
    ///
    /// # Errors
    /// If a required or disabled pass does not exist, or if a setting does not exist, does not take
    /// its value, or is given twice.
    pub fn build(self) -> Result<PassContext, ContextError> {
        let PassContextBuilder { mut settings, config: given, inherited, instruments, rewrites } = self;
        // A context that is derived from another one has the ledger of that one, unless it is asked
        // for another.
        if rewrites.is_some() || !settings.rewrites.is_on() {
            let requests = rewrites.into_iter().chain(instruments.iter().filter_map(|i| i.rewrites()));
            settings.rewrites = requests.reduce(RewriteOptions::with).map_or_else(Rewrites::default, Rewrites::new);
        }
        let registry = settings.registry();
        let passes = registry.passes();
        for name in settings.required.iter().chain(&settings.disabled) {
            if !passes.iter().any(|p| p.name() == name) && !settings.known.contains(name) {
                let known = passes.iter().map(|p| p.name()).chain(settings.known.iter().map(String::as_str));
                return Err(UnknownName::new("pass", name, known).into());
            }
        }
        let mut config: Vec<ConfigValue> = registry.configs().iter().map(|d| d.default.clone()).collect();
        let mut seen = vec![false; config.len()];
        for (n, given) in given.into_iter().enumerate() {
            let (key, value) = match &given {
                Given::Value(key, _) => (key.as_str(), ""),
                Given::Text(text) => match text.split_once('=') {
                    Some((key, value)) => (key.trim(), value.trim()),
                    None => return Err(ConfigError::Form(text.clone()).into()),
                },
            };
            let i = registry.config_index(key).map_err(ConfigError::from)?;
            let def = &registry.configs()[i];
            if n >= inherited && std::mem::replace(&mut seen[i], true) {
                return Err(ConfigError::Twice(def.key.to_string()).into());
            }
            config[i] = match given {
                Given::Value(_, value) => def.check(value)?,
                Given::Text(_) => def.parse(value)?,
            };
        }
        let shared = Shared { settings, instruments: Mutex::new(instruments.into()), log: Log::default() };
        Ok(PassContext { shared: Arc::new(shared), config: config.into(), frame: None, log: None })
    }
}

anfora_ir::brief_debug! { PassContextBuilder; }
