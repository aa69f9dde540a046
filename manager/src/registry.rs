//! Passes, pipelines and settings by name.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use anfora_ir::Phase;

use crate::config::{ConfigDef, ConfigError, ConfigValue, OptionDef, Options};
use crate::error::{PassError, PassFailure, in_own_words};
use crate::info::{Outcome, PassInfo};
use crate::named_pipeline::{PipelineEntry, PipelineText};
use crate::names::{UnknownName, is_name};
use crate::pass::Pass;
use crate::phases::PhaseEntry;
use crate::properties::{Properties, Property};

/// A pass that can be made by name. [`register_pass!`](crate::register_pass) makes such entries.
#[derive(Clone, Debug)]
pub struct PassEntry {
    /// The name, as pipelines write it; also the name of the passes that are made.
    pub name: &'static str,
    /// A line of documentation.
    pub doc: &'static str,
    /// The least level of the contexts under which the pass runs.
    pub opt_level: u8,
    /// The options of the pass.
    pub options: &'static [OptionDef],
    /// The settings of contexts that the pass reads, which are registered with it. Several passes
    /// may declare the same setting.
    pub configs: &'static [ConfigDef],
    /// Makes the pass. Each declared option has a value that it takes.
    pub make: fn(&Options) -> Result<Arc<dyn Pass>, PassError>,
}

/// A pass of the registry, as lists show it.
#[derive(Clone)]
pub struct RegisteredPass {
    pub(crate) name: String,
    pub(crate) doc: String,
    pub(crate) opt_level: u8,
    pub(crate) options: &'static [OptionDef],
    pub(crate) maker: Maker,
}

type Maker = Arc<dyn Fn(&Options, &Properties) -> Result<Arc<dyn Pass>, MakeError> + Send + Sync>;

impl RegisteredPass {
    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a line of documentation.
    pub fn doc(&self) -> &str {
        &self.doc
    }

    /// Returns the least level of the contexts under which the pass runs.
    pub fn opt_level(&self) -> u8 {
        self.opt_level
    }

    /// Returns the options of the pass.
    pub fn options(&self) -> &'static [OptionDef] {
        self.options
    }
}

/// Passes, pipelines and settings by name. It is a value: each embedder has its own, and adds to
/// it. A new registry has the standard properties and phases.
#[derive(Clone, Default)]
pub struct PassRegistry {
    passes: Vec<RegisteredPass>,
    pipelines: Vec<PipelineEntry>,
    configs: Vec<ConfigDef>,
    /// The names of passes and pipelines, which share one namespace.
    by_name: HashMap<String, Named>,
    /// The properties and phases, shared with copies of the registry.
    properties: Arc<Properties>,
    /// True if `EnterPhase` is registered, and not another pass of that name.
    pub(crate) has_enter_phase: bool,
}

/// The word with which repetitions begin in pipelines.
pub(crate) const FIXPOINT: &str = "fixpoint";

/// The meaning of a name in a pipeline: a pass or pipeline, by its index.
#[derive(Copy, Clone)]
pub(crate) enum Named {
    Pass(usize),
    Pipeline(usize),
}

/// The reason why something cannot be registered.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RegistryError {
    /// The name is taken.
    #[error("there is a {what} `{name}` already")]
    Duplicate {
        /// The kind of the thing that has the name.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// Pipelines cannot contain the name: a name begins with a letter, continues with letters,
    /// digits, `_`, `.` and `-`, and is not `fixpoint`.
    #[error("`{0}` cannot be the name of a pass, pipeline, property, option or config key")]
    Name(String),
    /// It refers to a name that does not exist.
    #[error(transparent)]
    Unknown(#[from] UnknownName),
    /// The default of a setting is not a value that the setting takes.
    #[error("the default of `{0}` is not a value that it takes")]
    Default(&'static str),
    /// A pipeline has no text with its options at their defaults.
    #[error("pipeline `{name}` cannot be made: {error}")]
    Pipeline {
        /// The pipeline.
        name: String,
        /// The error of the function that writes its text.
        error: ConfigError,
    },
}

/// The reason why a pass of the registry was not made.
#[derive(Debug, thiserror::Error)]
pub enum MakeError {
    /// There is no pass of that name.
    #[error(transparent)]
    Unknown(#[from] UnknownName),
    /// The maker of the pass failed.
    #[error("pass `{name}` cannot be made: {error}")]
    Failed {
        /// The pass.
        name: String,
        /// The error of the maker.
        error: PassError,
    },
}

impl PassRegistry {
    /// Makes a registry without passes, pipelines and settings.
    pub fn new() -> PassRegistry {
        PassRegistry::default()
    }

    /// Registers a pass and the settings that it reads, or neither.
    ///
    /// # Errors
    /// If the name is taken, or a pipeline could not contain it or the name of an option, or if one
    /// of the settings cannot be registered. A setting that is registered already with the same
    /// declaration is no error.
    pub fn register(&mut self, entry: PassEntry) -> Result<(), RegistryError> {
        let PassEntry { name, doc, opt_level, options, configs, make } = entry;
        check_options(name, options)?;
        let failed = move |error| MakeError::Failed { name: name.to_string(), error };
        let maker: Maker = Arc::new(move |options, _| make(options).map_err(failed));
        let (name, doc) = (name.to_string(), doc.to_string());
        let there = self.configs.len();
        let mut added = configs.iter().try_for_each(|config| match self.find_config(config.key) {
            Some(i) if self.configs[i] == *config => Ok(()),
            _ => self.register_config(config.clone()),
        });
        added = added.and_then(|()| self.add_pass(RegisteredPass { name, doc, opt_level, options, maker }));
        if added.is_err() {
            self.configs.truncate(there);
        }
        added
    }

    /// Registers a pass without options, under its own name.
    ///
    /// Cost: linear in the text.
    ///
    /// # Errors
    /// If the name is taken, or a pipeline could not contain it.
    pub fn register_pass(&mut self, pass: impl Pass + 'static, doc: impl Into<String>) -> Result<(), RegistryError> {
        let PassInfo { name, opt_level, .. } = pass.info().clone();
        let pass: Arc<dyn Pass> = Arc::new(pass);
        let maker: Maker = Arc::new(move |_, _| Ok(pass.clone()));
        self.add_pass(RegisteredPass { name, doc: doc.into(), opt_level, options: &[], maker })
    }

    pub(crate) fn add_pass(&mut self, pass: RegisteredPass) -> Result<(), RegistryError> {
        self.take_name(&pass.name, Named::Pass(self.passes.len()))?;
        self.passes.push(pass);
        Ok(())
    }

    /// Registers a pipeline under a name: a text, or options and a text that follows from them
    /// ([`PipelineText::with_options`]). The names in the text are looked up when it is used, so it
    /// may name things that are registered later.
    ///
    /// Cost: linear in the text.
    ///
    /// # Errors
    /// If the name is taken, or a pipeline could not contain it or the name of an option, or if no
    /// text follows from the defaults of the options.
    ///
    /// ```
    /// use anfora_manager::{ModulePass, OptionDef, PassRegistry, PipelineText, parse_pipeline};
    ///
    /// const OPTIONS: &[OptionDef] = &[OptionDef::int("rounds", 1, 9, 2, "how often it sweeps")];
    ///
    /// let mut registry = PassRegistry::new();
    /// registry.register_pass(ModulePass::new("Sweep", 0, |_, _| Ok(())), "Sweeps")?;
    /// let text = PipelineText::with_options(OPTIONS, |options| {
    ///     Ok(format!("fixpoint<{}>(Sweep)", options.get::<u32>("rounds")?))
    /// });
    /// registry.register_pipeline("tidy", text, "Sweeps until it is tidy")?;
    ///
    /// assert_eq!(registry.pipelines()[0].text, "fixpoint<2>(Sweep)");
    /// let pipeline = parse_pipeline(&registry, "Sweep,tidy{rounds=3}")?;
    /// assert_eq!(pipeline.to_string(), "Sweep,fixpoint<3>(Sweep)");
    /// let misspelt = parse_pipeline(&registry, "Sweep,tidy{round=3}").unwrap_err();
    /// assert_eq!((misspelt.column, misspelt.suggestion.as_deref()), (12, Some("rounds")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn register_pipeline(
        &mut self,
        name: impl Into<String>,
        text: impl Into<PipelineText>,
        doc: impl Into<String>,
    ) -> Result<(), RegistryError> {
        let name = name.into();
        self.check_free(&name)?;
        let entry = PipelineEntry::new(name.clone(), text.into(), doc.into())
            .map_err(|error| RegistryError::Pipeline { name: name.clone(), error })?;
        check_options(&name, entry.options)?;
        self.take_name(&name, Named::Pipeline(self.pipelines.len()))?;
        self.pipelines.push(entry);
        Ok(())
    }

    fn take_name(&mut self, name: &str, slot: Named) -> Result<(), RegistryError> {
        self.check_free(name)?;
        self.by_name.insert(name.to_string(), slot);
        Ok(())
    }

    pub(crate) fn check_free(&self, name: &str) -> Result<(), RegistryError> {
        if !is_name(name) || name == FIXPOINT {
            return Err(RegistryError::Name(name.to_string()));
        }
        let what = match self.by_name.get(name) {
            Some(Named::Pass(_)) => "pass",
            Some(Named::Pipeline(_)) => "pipeline",
            None => return Ok(()),
        };
        Err(RegistryError::Duplicate { what, name: name.to_string() })
    }

    // ---- Properties and phases ----

    /// Declares a property that passes may need, establish or break.
    ///
    /// # Errors
    /// If the name is taken or not allowed, or the property excludes one that does not exist.
    pub fn register_property(&mut self, property: Property) -> Result<(), RegistryError> {
        let name = property.name();
        if !is_name(name) {
            return Err(RegistryError::Name(name.to_string()));
        }
        if self.properties.find(name).is_ok() {
            return Err(RegistryError::Duplicate { what: "property", name: name.to_string() });
        }
        for excluded in property.excludes() {
            self.properties.find(excluded)?;
        }
        Arc::make_mut(&mut self.properties).list.push(property);
        Ok(())
    }

    /// Declares a phase, and inserts it in the order of its number. Modules that claim this phase
    /// or a later one promise the properties that hold from it on.
    ///
    /// # Errors
    /// If a phase with this number exists, or one of its properties does not.
    pub fn register_phase(&mut self, entry: PhaseEntry) -> Result<(), RegistryError> {
        for property in &entry.properties {
            self.properties.find(property)?;
        }
        match self.properties.phases.binary_search_by_key(&entry.phase, |e| e.phase) {
            Ok(_) => Err(RegistryError::Duplicate { what: "phase", name: entry.phase.to_string() }),
            Err(place) => {
                Arc::make_mut(&mut self.properties).phases.insert(place, entry);
                Ok(())
            }
        }
    }

    /// Returns the properties, the standard ones first, in the order of registration.
    pub fn properties(&self) -> &[Property] {
        &self.properties.list
    }

    /// Returns the property of a name.
    ///
    /// Cost: linear in the text.
    ///
    /// # Errors
    /// If there is no such property.
    pub fn property(&self, name: &str) -> Result<&Property, UnknownName> {
        self.properties.find(name)
    }

    /// Returns the phases, earliest first.
    pub fn phases(&self) -> &[PhaseEntry] {
        &self.properties.phases
    }

    /// Returns the names of the properties that hold for a module that claims a phase: those of the
    /// phase and of earlier phases, except for those that later ones exclude.
    pub fn holding_from(&self, phase: Phase) -> Vec<&str> {
        self.properties.holding_from(phase)
    }

    /// Returns the names of the passes that establish a property with their options at their
    /// defaults, in the order of registration.
    ///
    /// Cost: linear in the text.
    pub fn establishing(&self, property: &str) -> Vec<&str> {
        let establishes = |pass: &&RegisteredPass| {
            self.make(&pass.name).is_ok_and(|made| made.info().establishes.iter().any(|e| e == property))
        };
        self.passes.iter().filter(establishes).map(RegisteredPass::name).collect()
    }

    pub(crate) fn properties_and_phases(&self) -> &Properties {
        &self.properties
    }

    /// Declares a setting of contexts.
    ///
    /// # Errors
    /// If the key is taken, or the default is not a value that the setting takes.
    pub fn register_config(&mut self, def: ConfigDef) -> Result<(), RegistryError> {
        check_def(&def)?;
        if self.find_config(def.key).is_some() {
            return Err(RegistryError::Duplicate { what: "config key", name: def.key.to_string() });
        }
        self.configs.push(def);
        Ok(())
    }

    /// Returns the passes, in the order of registration.
    pub fn passes(&self) -> &[RegisteredPass] {
        &self.passes
    }

    /// Returns the named pipelines, in the order of registration.
    pub fn pipelines(&self) -> &[PipelineEntry] {
        &self.pipelines
    }

    /// Returns the settings of contexts, in the order of registration.
    pub fn configs(&self) -> &[ConfigDef] {
        &self.configs
    }

    /// Returns true if a pass or pipeline has the name.
    ///
    /// Cost: linear in the text.
    pub fn contains(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Returns the setting of a key.
    ///
    /// Cost: linear in the text.
    ///
    /// # Errors
    /// If there is no such setting.
    pub fn config(&self, key: &str) -> Result<&ConfigDef, UnknownName> {
        self.config_index(key).map(|i| &self.configs[i])
    }

    pub(crate) fn config_index(&self, key: &str) -> Result<usize, UnknownName> {
        self.find_config(key).ok_or_else(|| UnknownName::new("config key", key, self.configs.iter().map(|d| d.key)))
    }

    /// Returns the index of a setting, if it is declared. Does not look for similar names.
    ///
    /// Cost: linear in the text.
    pub(crate) fn find_config(&self, key: &str) -> Option<usize> {
        self.configs.iter().position(|config| config.key == key)
    }

    /// Makes a pass with its options at their defaults.
    ///
    /// Cost: linear in the text.
    ///
    /// # Errors
    /// If no pass has the name, or its constructor fails.
    pub fn make(&self, name: &str) -> Result<Arc<dyn Pass>, MakeError> {
        match self.by_name.get(name) {
            Some(&Named::Pass(i)) => {
                let pass = &self.passes[i];
                self.make_with(pass, &Options::new(&pass.name, pass.options))
            }
            _ => Err(UnknownName::new("pass", name, self.passes.iter().map(RegisteredPass::name)).into()),
        }
    }

    /// Returns the settings of contexts that a pipeline may give like options of a pass, without
    /// its name: those whose keys are its name, a dot, and a key that is none of its options.
    ///
    /// Cost: linear in the number of settings.
    pub fn settings_of<'a>(
        &'a self,
        pass: &'a RegisteredPass,
    ) -> impl Iterator<Item = (&'static str, &'a ConfigDef)> + Clone {
        let rest = |key: &'static str| key.strip_prefix(pass.name())?.strip_prefix('.');
        let short = move |def: &'a ConfigDef| Some((rest(def.key)?, def));
        self.configs.iter().filter_map(short).filter(|(key, _)| pass.options().iter().all(|o| o.key != *key))
    }

    pub(crate) fn make_with(&self, pass: &RegisteredPass, options: &Options) -> Result<Arc<dyn Pass>, MakeError> {
        let made = (pass.maker)(options, &self.properties)?;
        for property in made.info().properties() {
            self.properties.find(property)?;
        }
        if made.info().name != pass.name {
            let error = PassError::new(format!("its constructor made a pass called `{}`", made.info().name));
            return Err(MakeError::Failed { name: pass.name.clone(), error });
        }
        let text = options.text();
        if text.is_empty() {
            return Ok(made);
        }
        Ok(Arc::new(WithOptions {
            text: format!("{}{text}", pass.name),
            settings: options.settings.clone(),
            pass: made,
        }))
    }

    pub(crate) fn find(&self, name: &str) -> Result<Named, UnknownName> {
        self.by_name.get(name).copied().ok_or_else(|| {
            let mut unknown = UnknownName::new("pass or pipeline", name, self.by_name.keys().map(String::as_str));
            if unknown.suggestion.is_none() {
                unknown.suggestion = anfora_ir::did_you_mean(name, [FIXPOINT]).map(str::to_string);
            }
            unknown
        })
    }
}

/// Checks the declarations of the options of a pass or pipeline.
fn check_options(name: &str, options: &[OptionDef]) -> Result<(), RegistryError> {
    for (i, option) in options.iter().enumerate() {
        check_def(option)?;
        if options[..i].iter().any(|o| o.key == option.key) {
            return Err(RegistryError::Duplicate { what: "option", name: format!("{name}.{}", option.key) });
        }
    }
    Ok(())
}

fn check_def(def: &ConfigDef) -> Result<(), RegistryError> {
    if !is_name(def.key) {
        return Err(RegistryError::Name(def.key.to_string()));
    }
    match def.check(def.default.clone()) {
        Ok(value) if value == def.default => Ok(()),
        _ => Err(RegistryError::Default(def.key)),
    }
}

/// A pass with the text of the options that it was made with.
struct WithOptions {
    pass: Arc<dyn Pass>,
    text: String,
    settings: Vec<(&'static str, ConfigValue)>,
}

impl Pass for WithOptions {
    fn info(&self) -> &PassInfo {
        self.pass.info()
    }

    fn run(&self, module: &mut anfora_ir::Module, cx: &crate::PassContext) -> Result<Outcome, PassFailure> {
        match &*self.settings {
            [] => self.pass.run(module, cx),
            settings => self.pass.run(module, &cx.with_config(settings)),
        }
    }

    fn pipeline_text(&self) -> String {
        self.text.clone()
    }

    fn wrapped(&self) -> Option<&dyn Pass> {
        Some(&*self.pass)
    }
}

// ---- The registry of contexts that were given none ----

static DEFAULT: OnceLock<Arc<PassRegistry>> = OnceLock::new();

/// The error that the process has another default registry already.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the process has another default registry already")]
pub struct DefaultRegistryError;

/// Sets the registry of the contexts that were given none: the contexts that
/// [`PassContext::new`](crate::PassContext::new) makes, those built without
/// [`registry`](crate::PassContextBuilder::registry), and the first context of each thread. A
/// process should call this once, best at its beginning: until then such contexts know no names.
/// The call also reaches contexts that were made before it; their settings have their defaults.
///
/// `anfora_passes::install_default_registry` sets the registry of the reference passes.
///
/// # Errors
/// If another registry was set before.
///
/// ```
/// use std::sync::Arc;
/// use anfora_ir::{Module, OpRegistry};
/// use anfora_manager::{Declare, ModulePass, Pass, PassContext, PassRegistry,
/// set_default_registry};
///
/// let mut registry = PassRegistry::new();
/// registry.register_pass(ModulePass::new("Prepare", 0, |_, _| Ok(())), "comes first")?;
/// let registry = Arc::new(registry);
/// let cx = PassContext::current();
/// set_default_registry(registry.clone())?;
/// let pass = ModulePass::new("Mine", 0, |_, _| Ok(())).requiring(["Prepare"]);
/// pass.apply(&mut Module::new(Arc::new(OpRegistry::new())), &cx)?;
/// assert!(PassContext::builder().disable("Prepair").build().is_err());
///
/// assert!(set_default_registry(registry).is_ok());
/// assert!(set_default_registry(Arc::new(PassRegistry::new())).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn set_default_registry(registry: Arc<PassRegistry>) -> Result<(), DefaultRegistryError> {
    let set = DEFAULT.get_or_init(|| registry.clone());
    if Arc::ptr_eq(set, &registry) { Ok(()) } else { Err(DefaultRegistryError) }
}

/// Returns the default registry, or an empty one if none was set.
pub(crate) fn default_registry() -> &'static Arc<PassRegistry> {
    static EMPTY: OnceLock<Arc<PassRegistry>> = OnceLock::new();
    DEFAULT.get().unwrap_or_else(|| EMPTY.get_or_init(Arc::default))
}

in_own_words!(DefaultRegistryError, MakeError, RegistryError);

anfora_ir::brief_debug! { RegisteredPass { name }; PassRegistry { passes, pipelines, configs }; }
