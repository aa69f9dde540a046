//! The context that passes run under.

mod builder;

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use anfora_ir::{Diagnostic, ExprId, FunctionKey, Module, Rewrites, Severity};

use builder::Given;
pub use builder::{ContextError, PassContextBuilder};

use crate::analyses::Analyses;
use crate::config::{ConfigDef, ConfigError, ConfigValue, FromConfig, read};
use crate::error::{PassError, PassFailure};
use crate::frame::RunFrame;
use crate::instrument::{Instrument, guarded};
use crate::messages::{MAX_REMARKS, Messages};
use crate::parallel::Workers;
use crate::registry::{PassRegistry, default_registry};
use crate::sink::Sink;
use crate::statistics::Statistics;
use crate::sync::lock;
use crate::verification::Verification;

/// The settings that passes run under: a level, passes that are required or disabled, settings,
/// instruments, and a store for remarks and counts.
///
/// This is a handle: clones share everything, and may be sent to other threads. It does not change
/// after it is built, except for its instruments and for the messages and counts that passes leave
/// in it. The handle that a pass is given also knows that pass.
#[derive(Clone)]
pub struct PassContext {
    shared: Arc<Shared>,
    /// A value for each setting of the registry, in its order. Empty if the context was built
    /// without a registry, before the process had a default one.
    config: Arc<[ConfigValue]>,
    frame: Option<Arc<RunFrame>>,
    /// The log of a handle made by [`PassContext::fork`]. It holds messages and counts until
    /// [`PassContext::merge`] adds them to the context, in the order of the functions.
    log: Option<Arc<Log>>,
}

type Instruments = Arc<[Arc<dyn Instrument>]>;

/// The settings of a builder and of its context.
#[derive(Clone)]
struct Settings {
    opt_level: u8,
    required: Vec<String>,
    disabled: Vec<String>,
    known: Vec<String>,
    /// Absent if none was given: the context then uses the default registry of the process.
    registry: Option<Arc<PassRegistry>>,
    workers: Arc<Workers>,
    worth_sharing: usize,
    /// The output of `PrintIR`.
    output: Arc<Mutex<Sink>>,
    verification: Verification,
    /// The ledger of rewrites; off unless a limit or a record was asked for.
    rewrites: Rewrites,
}

impl Settings {
    fn registry(&self) -> &Arc<PassRegistry> {
        self.registry.as_ref().unwrap_or_else(|| default_registry())
    }
}

struct Shared {
    settings: Settings,
    instruments: Mutex<Instruments>,
    log: Log,
}

/// The messages and counts that passes have left.
#[derive(Default)]
pub(crate) struct Log {
    remarks: Mutex<KeptRemarks>,
    statistics: Mutex<Statistics>,
}

#[derive(Default)]
struct KeptRemarks {
    kept: Vec<PassRemark>,
    dropped: u64,
}

impl KeptRemarks {
    fn append(&mut self, remarks: impl Iterator<Item = PassRemark>, dropped: u64) {
        self.dropped += dropped;
        for remark in remarks {
            match self.kept.len() {
                MAX_REMARKS => self.dropped += 1,
                _ => self.kept.push(remark),
            }
        }
    }
}

/// A message that a pass left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PassRemark {
    /// The name of the pass; empty for a message that no pass left.
    pub pass: String,
    /// The message.
    pub diagnostic: Diagnostic,
}

impl Default for PassContext {
    fn default() -> PassContext {
        PassContext::new()
    }
}

impl PassContext {
    /// Returns a context of level 2 that knows the passes and settings of the process's default
    /// registry ([`set_default_registry`](crate::set_default_registry)); as long as the process has
    /// none, it knows no names.
    pub fn new() -> PassContext {
        PassContextBuilder::new().build().expect("nothing is set that could be wrong")
    }

    /// Returns a context of level 2 that knows the passes and settings of a registry.
    pub fn with_registry(registry: Arc<PassRegistry>) -> PassContext {
        PassContextBuilder::new().registry(registry).build().expect("nothing is set that could be wrong")
    }

    /// Returns a builder of a context.
    pub fn builder() -> PassContextBuilder {
        PassContextBuilder::new()
    }

    /// Returns a builder that starts with the level, the required and disabled passes, the
    /// settings, the instruments and the registry of this context.
    pub fn derive(&self) -> PassContextBuilder {
        let s = &*self.shared;
        let values = self.registry().configs().iter().zip(&*self.config);
        PassContextBuilder {
            settings: s.settings.clone(),
            config: values.map(|(d, v)| Given::Value(d.key.to_string(), v.clone())).collect(),
            inherited: self.config.len(),
            instruments: self.instruments(),
            rewrites: None,
        }
    }

    // ---- Settings of the context ----

    /// Returns the level. Passes of a higher level do not run.
    pub fn opt_level(&self) -> u8 {
        self.shared.settings.opt_level
    }

    /// Returns the number of threads that passes over functions are distributed over.
    pub fn threads(&self) -> usize {
        self.shared.settings.workers.threads
    }

    /// Returns the least number of nodes of a module whose functions are distributed over threads.
    pub fn worth_sharing(&self) -> usize {
        self.shared.settings.worth_sharing
    }

    /// Returns the setting for the verification of the results of passes by the context itself.
    /// Instruments may verify them too.
    pub fn verification(&self) -> Verification {
        self.shared.settings.verification
    }

    /// Returns the ledger of the rewrites of all passes that have run under this context. It is off
    /// unless [`PassContextBuilder::rewrites`] or [`PassContextBuilder::limit_rewrites`] turned it
    /// on.
    pub fn rewrites(&self) -> &Rewrites {
        &self.shared.settings.rewrites
    }

    /// Returns the threads over which `jobs` jobs with `nodes` nodes in total are distributed;
    /// `None` if one thread does all of them. If the ledger of the module is on, rewrites are
    /// counted on one thread, in the order of the functions.
    pub(crate) fn workers_for(&self, rewrites: &Rewrites, jobs: usize, nodes: usize) -> Option<&Arc<Workers>> {
        let Settings { worth_sharing, workers, .. } = &self.shared.settings;
        let is_worth_it = nodes >= *worth_sharing
            && jobs > 1
            && !rewrites.is_on()
            && workers.pool().is_some()
            && !PassContext::is_in_distributed_work();
        is_worth_it.then_some(workers)
    }

    /// Returns true if the pass runs whatever its level is, without instruments being asked.
    ///
    /// Cost: linear in the text.
    pub fn is_required(&self, pass: &str) -> bool {
        self.shared.settings.required.iter().any(|p| p == pass)
    }

    /// Returns true if the pass does not run, even if it is required.
    ///
    /// Cost: linear in the text.
    pub fn is_disabled(&self, pass: &str) -> bool {
        self.shared.settings.disabled.iter().any(|p| p == pass)
    }

    /// Returns the passes that run whatever their level is.
    pub fn required(&self) -> &[String] {
        &self.shared.settings.required
    }

    /// Returns the passes that do not run.
    pub fn disabled(&self) -> &[String] {
        &self.shared.settings.disabled
    }

    /// Returns the registry with the names that the context knows.
    pub fn registry(&self) -> &Arc<PassRegistry> {
        self.shared.settings.registry()
    }

    /// Returns the value of a setting that the registry declares.
    ///
    /// Cost: linear in the text.
    ///
    /// # Errors
    /// If there is no such setting, or its values cannot be read as a `T`.
    pub fn config<T: FromConfig>(&self, key: &str) -> Result<T, ConfigError> {
        self.config_of(self.registry().config(key)?)
    }

    /// Returns the value of a setting: that of the context, or the default if the registry of the
    /// context does not declare the setting.
    ///
    /// # Errors
    /// If the values of the setting cannot be read as a `T`.
    pub fn config_of<T: FromConfig>(&self, def: &ConfigDef) -> Result<T, ConfigError> {
        let value = self.registry().find_config(def.key).and_then(|i| self.config.get(i));
        read(def, value.unwrap_or(&def.default))
    }

    /// Returns the settings that are not at their defaults, in the order of their declaration.
    pub fn changed_config(&self) -> impl Iterator<Item = (&ConfigDef, &ConfigValue)> {
        self.registry().configs().iter().zip(&*self.config).filter(|(d, v)| d.default != **v)
    }

    /// Returns a handle with other values of settings, by their keys. Settings that the registry of
    /// the context does not declare are left out.
    pub(crate) fn with_config(&self, given: &[(&str, ConfigValue)]) -> PassContext {
        let registry = self.registry();
        let mut config: Vec<ConfigValue> = registry.configs().iter().map(|d| d.default.clone()).collect();
        config.iter_mut().zip(&*self.config).for_each(|(to, value)| to.clone_from(value));
        for (key, value) in given {
            if let Some(i) = registry.find_config(key) {
                config[i].clone_from(value);
            }
        }
        PassContext { config: config.into(), ..self.clone() }
    }

    // ---- Messages and counts ----

    /// Leaves a message: a remark (why something was not done), a note, a warning or an error. A
    /// pass that has left an error continues, to find more. When it ends, it fails with all of its
    /// errors, and its changes are rolled back.
    ///
    /// Messages of a pass are added to those of the context when the pass ends. A span that is one
    /// byte long is then extended to the whole expression that begins there.
    ///
    /// If the pass runs other passes, or if this handle was given to no pass, the message is added
    /// at once. An error that is added at once makes no pass fail.
    pub fn remark(&self, diagnostic: Diagnostic) {
        let mut messages = Messages::default();
        messages.push(diagnostic);
        self.leave(messages);
    }

    /// Leaves a message about an expression of a function of the module. Adds the name of the
    /// function, the bytes of the expression in the source, and the binding whose value contains
    /// the expression, unless the message has them already. The expression may be any expression of
    /// the function as it is now.
    ///
    /// The bindings for all messages of a pass are looked up when it ends, in one walk of each
    /// function. If the expression is not linked any more then, the message names only the
    /// function. Outside of a pass, and for a pass that runs other passes, each call walks the
    /// function.
    pub fn report(&self, module: &Module, function: FunctionKey, expr: ExprId, diagnostic: Diagnostic) {
        let mut messages = Messages::default();
        match module.get(function) {
            Some(f) => {
                let name = (module.name(function), Some(function));
                messages.report((&module.cx, &f.body), name, expr, diagnostic);
            }
            None => messages.push(diagnostic),
        }
        if self.frame.as_deref().is_none_or(|f| lock(&f.messages).is_none()) {
            messages.name_bindings(module);
        }
        self.leave(messages);
    }

    /// Leaves messages of the running pass.
    pub(crate) fn leave(&self, messages: Messages) {
        if messages.is_empty() {
            return;
        }
        if let Some(frame) = &self.frame
            && let Some(waiting) = &mut *lock(&frame.messages)
        {
            return waiting.append(messages);
        }
        let (kept, dropped) = messages.into_parts();
        self.keep_remarks(kept, dropped);
    }

    /// Returns true if the pass that this handle was given to has reported an error.
    pub(crate) fn has_errors(&self) -> bool {
        self.frame.as_deref().is_some_and(|f| lock(&f.messages).as_ref().is_some_and(|m| m.errors > 0))
    }

    /// Ends the pass that this handle was given to: moves its messages to the context.
    pub(crate) fn close(self) {
        let messages = self.frame.as_deref().and_then(|f| lock(&f.messages).take());
        messages.into_iter().for_each(|messages| self.leave(messages));
    }

    fn keep_remarks(&self, diagnostics: impl Iterator<Item = Diagnostic>, dropped: u64) {
        let pass = self.pass().unwrap_or_default();
        let named = diagnostics.map(|diagnostic| PassRemark { pass: pass.to_string(), diagnostic });
        lock(&self.log().remarks).append(named, dropped);
    }

    /// Takes the messages that were left, oldest first.
    pub fn take_remarks(&self) -> Vec<PassRemark> {
        let KeptRemarks { mut kept, dropped } = std::mem::take(&mut *lock(&self.log().remarks));
        if dropped > 0 {
            let diagnostic = Diagnostic::new(Severity::Note, format!("{dropped} more remarks were not kept"));
            kept.push(PassRemark { pass: String::new(), diagnostic });
        }
        kept
    }

    /// Adds to a counter of the running pass. The counts of a pass that fails are dropped.
    ///
    /// Cost: linear in the text.
    pub fn count(&self, counter: &'static str, n: u64) {
        match &self.frame {
            Some(frame) => frame.count(counter, n),
            None => lock(&self.log().statistics).add("", counter, n),
        }
    }

    /// Returns the counts that passes have left under this context.
    pub fn statistics(&self) -> Statistics {
        lock(&self.log().statistics).clone()
    }

    /// Adds the counts of the pass of this handle to those of the context.
    pub(crate) fn keep_counts(&self) {
        if let Some(frame) = &self.frame {
            let mut statistics = lock(&self.log().statistics);
            frame.take_counts().into_iter().for_each(|(counter, n)| statistics.add(&frame.pass, counter, n));
        }
    }

    // ---- The running pass ----

    /// Returns the name of the pass that this handle was given to.
    pub fn pass(&self) -> Option<&str> {
        self.frame.as_deref().map(|f| f.pass.as_str())
    }

    /// Returns the number of running passes that enclose the holder of this handle, the pass of
    /// this handle included: 0 outside of any pass.
    pub fn depth(&self) -> usize {
        self.frame.as_deref().map_or(0, |f| f.depth)
    }

    /// Returns the names of the passes that [`PassContext::depth`] counts, outermost first.
    pub(crate) fn path(&self) -> Vec<String> {
        self.frame.as_deref().map_or_else(Vec::new, RunFrame::path)
    }

    /// Returns the results of analyses that are cached while the outermost running pass runs; an
    /// empty cache outside of any pass.
    pub fn analyses(&self) -> Analyses {
        self.frame.as_deref().map_or_else(Analyses::new, RunFrame::analyses)
    }

    pub(crate) fn frame(&self) -> Option<&Arc<RunFrame>> {
        self.frame.as_ref()
    }

    pub(crate) fn inside(&self, frame: RunFrame) -> PassContext {
        PassContext { frame: Some(Arc::new(frame)), ..self.clone() }
    }

    fn log(&self) -> &Log {
        self.log.as_deref().unwrap_or(&self.shared.log)
    }

    /// Returns a handle for the same pass on another thread. Messages and counts that are left
    /// through it reach the context by [`PassContext::merge`].
    pub(crate) fn fork(&self) -> PassContext {
        let frame = self.frame.as_deref().map(|f| Arc::new(f.fork()));
        PassContext { frame, log: Some(Arc::default()), ..self.clone() }
    }

    /// Returns true if this handle was made by [`PassContext::fork`].
    pub(crate) fn is_fork(&self) -> bool {
        self.log.is_some()
    }

    /// Moves the messages and counts of a handle made by [`PassContext::fork`] to this context.
    pub(crate) fn merge(&self, other: &PassContext) {
        if let (Some(frame), Some(other)) = (&self.frame, &other.frame) {
            lock(&other.messages).iter_mut().for_each(|messages| self.leave(std::mem::take(messages)));
            other.take_counts().into_iter().for_each(|(counter, n)| frame.count(counter, n));
        }
        let Some(log) = &other.log else { return };
        let KeptRemarks { kept, dropped } = std::mem::take(&mut *lock(&log.remarks));
        lock(&self.log().remarks).append(kept.into_iter(), dropped);
        lock(&self.log().statistics).append(std::mem::take(&mut *lock(&log.statistics)));
    }

    // ---- Instruments ----

    /// Returns the instruments of the context, in their order. A context whose instruments failed
    /// to be entered or exited has none.
    pub fn instruments(&self) -> Vec<Arc<dyn Instrument>> {
        lock(&self.shared.instruments).to_vec()
    }

    /// Prints to the output of the context.
    pub(crate) fn print(&self, print: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), PassError> {
        lock(&self.shared.settings.output).print(print)
    }

    /// Returns the instruments to call. Instruments run on the thread that runs the pass, so a
    /// handle for another thread has none.
    pub(crate) fn active_instruments(&self) -> Instruments {
        if self.is_fork() { Instruments::default() } else { lock(&self.shared.instruments).clone() }
    }

    fn set_instruments(&self, instruments: Vec<Arc<dyn Instrument>>) {
        // The old ones are dropped when the lock is not held any more.
        let _old = std::mem::replace(&mut *lock(&self.shared.instruments), instruments.into());
    }

    /// Exits the instruments of this context, gives it others, and enters those.
    ///
    /// # Errors
    /// If an instrument fails in its `exit` or `enter`. The context then has none.
    pub fn override_instruments(&self, instruments: Vec<Arc<dyn Instrument>>) -> Result<(), PassFailure> {
        self.exit_instruments()?;
        self.set_instruments(instruments);
        self.enter_instruments()
    }

    pub(crate) fn enter_instruments(&self) -> Result<(), PassFailure> {
        let instruments = self.active_instruments();
        for (i, instrument) in instruments.iter().enumerate() {
            if let Err(failure) = guarded(&**instrument, "enter", || instrument.enter(self)) {
                self.set_instruments(Vec::new());
                for entered in instruments[..i].iter().rev() {
                    if let Err(second) = guarded(&**entered, "exit", || entered.exit(self)) {
                        self.report_failure(&second);
                    }
                }
                return Err(failure);
            }
        }
        Ok(())
    }

    pub(crate) fn exit_instruments(&self) -> Result<(), PassFailure> {
        for instrument in self.active_instruments().iter() {
            if let Err(failure) = guarded(&**instrument, "exit", || instrument.exit(self)) {
                self.set_instruments(Vec::new());
                return Err(failure);
            }
        }
        Ok(())
    }

    /// Adds a failure to the remarks, because it cannot be returned to the caller.
    pub(crate) fn report_failure(&self, failure: &PassFailure) {
        self.keep_remarks(failure.to_diagnostics().into_iter(), 0);
    }
}

anfora_ir::brief_debug! { PassContext { opt_level, required, disabled }; }
