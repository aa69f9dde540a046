//! Printing of modules between passes.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Mutex;

use anfora_ir::{FunctionKey, Module, ModuleText, PrintOptions};

use crate::error::{PassError, PassFailure};
use crate::info::{Outcome, PassKind};
use crate::instrument::{Instrument, PassRun};
use crate::line_diff::write_unified_diff;
use crate::open_runs::OpenRuns;
use crate::sink::Sink;
use crate::sync::lock;

/// An instrument that prints the module before or after passes, under a heading in a comment: the
/// whole module, some of its functions, or the changes of a pass as a unified diff.
///
/// ```
/// use anfora_ir::{PrintLiterals, PrintOptions};
/// use anfora_manager::{PrintIr, PrintWhen};
///
/// // What each pass did to @main, without long constants, to standard error.
/// let literals = PrintLiterals::Elided { more_than: 16 };
/// let brief = PrintOptions { literals, ..PrintOptions::default() };
/// let print = PrintIr::diff(std::io::stderr()).functions(["main"]).options(brief);
///
/// // The module after each run of one pass that changed it.
/// let after = PrintWhen::Named(vec!["FoldConstant".to_string()]);
/// let print = PrintIr::new(PrintWhen::Never, after, std::io::stderr()).only_changed();
/// # let _ = print;
/// ```
///
/// A diff, and printing only the functions that changed, also need the text of the module before
/// each pass: this takes the time of one more print, and the memory of the text. Both are linear,
/// whatever the passes do. If nobody reads the output any more (a broken pipe), nothing more is
/// printed.
pub struct PrintIr {
    before: PrintWhen,
    after: PrintWhen,
    form: Form,
    /// The names without `@`; absent for all functions.
    functions: Option<Vec<String>>,
    options: PrintOptions,
    state: Mutex<State>,
}

/// The form of the output after a pass.
#[derive(Copy, Clone, PartialEq)]
enum Form {
    /// The text, after each pass.
    Always,
    /// The text, after passes that changed it.
    Changed,
    /// The changes of the text.
    Diff,
}

struct State {
    to: Sink,
    /// The module before each running pass, if it is needed.
    open: OpenRuns<Option<Snapshot>>,
}

/// The passes around which the module is printed. For a sequence, it is printed around the passes
/// of the sequence, unless the sequence itself is named.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PrintWhen {
    /// No pass.
    Never,
    /// Each pass.
    Always,
    /// The passes with these names.
    Named(Vec<String>),
}

impl PrintWhen {
    fn is_now(&self, run: &PassRun<'_>) -> bool {
        match self {
            PrintWhen::Never => false,
            PrintWhen::Always => run.kind() != PassKind::Sequence,
            PrintWhen::Named(names) => names.iter().any(|n| n == run.name()),
        }
    }
}

impl PrintIr {
    /// Makes an instrument that prints before and after passes.
    pub fn new(before: PrintWhen, after: PrintWhen, to: impl Write + Send + 'static) -> PrintIr {
        PrintIr {
            before,
            after,
            form: Form::Always,
            functions: None,
            options: PrintOptions::default(),
            state: Mutex::new(State { to: Sink::new(to), open: OpenRuns::default() }),
        }
    }

    /// Makes an instrument that prints after each pass that changed the module.
    pub fn changed(to: impl Write + Send + 'static) -> PrintIr {
        PrintIr::new(PrintWhen::Never, PrintWhen::Always, to).only_changed()
    }

    /// Makes an instrument that prints the changes of each pass as a unified diff, each function
    /// separately.
    pub fn diff(to: impl Write + Send + 'static) -> PrintIr {
        PrintIr::new(PrintWhen::Never, PrintWhen::Always, to).as_diff()
    }

    /// Prints only after passes that changed the module; with [`functions`](PrintIr::functions),
    /// only the functions whose text changed.
    #[must_use]
    pub fn only_changed(self) -> PrintIr {
        PrintIr { form: Form::Changed, ..self }
    }

    /// Prints the changes after passes as a unified diff, each function separately.
    #[must_use]
    pub fn as_diff(self) -> PrintIr {
        PrintIr { form: Form::Diff, ..self }
    }

    /// Prints only the functions with these names (without `@`), and nothing of the module around
    /// them.
    ///
    /// Cost: linear in the text.
    #[must_use]
    pub fn functions<S: Into<String>>(self, names: impl IntoIterator<Item = S>) -> PrintIr {
        PrintIr { functions: Some(names.into_iter().map(Into::into).collect()), ..self }
    }

    /// Sets the options for printing modules.
    #[must_use]
    pub fn options(self, options: PrintOptions) -> PrintIr {
        PrintIr { options, ..self }
    }

    fn is_shown(&self, name: &str) -> bool {
        self.functions.as_ref().is_none_or(|names| names.iter().any(|n| n == name))
    }

    /// Prints to the output.
    fn print(&self, print: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), PassError> {
        lock(&self.state).to.print(print)
    }

    /// Prints the module, or those of the selected functions for which `which` returns true.
    fn print_text(
        &self,
        module: &Module,
        text: &ModuleText,
        heading: &str,
        which: impl Fn(FunctionKey, &str) -> bool,
    ) -> Result<(), PassError> {
        self.print(|to| {
            if self.functions.is_none() {
                return writeln!(to, "// {heading}\n{}", text.text());
            }
            let mut is_first = true;
            for (_, function) in text.functions().filter(|(key, f)| self.is_shown(module.name(*key)) && which(*key, f))
            {
                if std::mem::take(&mut is_first) {
                    writeln!(to, "// {heading}")?;
                }
                writeln!(to, "{function}")?;
            }
            Ok(())
        })
    }

    /// Prints the changes of each selected function.
    fn print_diff(&self, old: &Snapshot, module: &Module, pass: &str) -> Result<(), PassError> {
        let new = Snapshot::new(module, &self.options);
        let (before, after) = (old.texts(), new.texts());
        let mut sections = Vec::new();
        if self.functions.is_none() {
            let title = "the module".to_string();
            sections.push((Some(title.clone()), old.text.head(), Some(title), new.text.head()));
        }
        for (key, text) in new.text.functions() {
            let (was, is) = (old.names.get(&key), new.names.get(&key));
            if was.into_iter().chain(is).any(|name| self.is_shown(name)) {
                let was = was.map(|name| format!("@{name}"));
                sections.push((was, before.get(&key).copied().unwrap_or(""), is.map(|name| format!("@{name}")), text));
            }
        }
        for (key, text) in old.text.functions().filter(|(key, _)| !after.contains_key(key)) {
            let was = old.names.get(&key).filter(|name| self.is_shown(name));
            if let Some(was) = was {
                sections.push((Some(format!("@{was}")), text, None, ""));
            }
        }
        sections.retain(|(_, old, _, new)| old != new);
        let order = |one: &Snapshot, other: &HashMap<FunctionKey, &str>| -> Vec<FunctionKey> {
            one.text.functions().map(|(key, _)| key).filter(|key| other.contains_key(key)).collect()
        };
        let reordered = self.functions.is_none() && order(old, &after) != order(&new, &before);
        self.print(|to| {
            writeln!(to, "// after {pass}")?;
            for (was, old, is, new) in &sections {
                let title = |name: &Option<String>, when: &str| match name {
                    Some(name) => format!("{name} {when} {pass}"),
                    None => "/dev/null".to_string(),
                };
                write_unified_diff([&title(was, "before"), &title(is, "after")], old, new, to)?;
            }
            if reordered {
                writeln!(to, "// the functions are in another order")?;
            } else if sections.is_empty() {
                writeln!(to, "// nothing that is shown is different")?;
            }
            writeln!(to)
        })
    }
}

/// The text of a module before a pass.
struct Snapshot {
    text: ModuleText,
    names: HashMap<FunctionKey, String>,
}

impl Snapshot {
    fn new(module: &Module, options: &PrintOptions) -> Snapshot {
        let names = module.order().iter().map(|&key| (key, module.name(key).to_string())).collect();
        Snapshot { text: ModuleText::new(module, options), names }
    }

    fn texts(&self) -> HashMap<FunctionKey, &str> {
        self.text.functions().collect()
    }
}

impl Instrument for PrintIr {
    fn name(&self) -> &str {
        "PrintIr"
    }

    fn run_before(&self, module: &Module, run: &PassRun<'_>) -> Result<(), PassError> {
        let is_compared = match self.form {
            Form::Always => false,
            Form::Changed => self.functions.is_some(),
            Form::Diff => true,
        };
        let before = self.before.is_now(run);
        let snapshot = (is_compared && self.after.is_now(run)).then(|| Snapshot::new(module, &self.options));
        if before {
            let heading = format!("before {}", run.name());
            match &snapshot {
                Some(snapshot) => self.print_text(module, &snapshot.text, &heading, |_, _| true)?,
                None => self.print_text(module, &ModuleText::new(module, &self.options), &heading, |_, _| true)?,
            }
        }
        lock(&self.state).open.begin(run, snapshot);
        Ok(())
    }

    fn run_after(&self, module: &Module, run: &PassRun<'_>, outcome: &Outcome) -> Result<(), PassError> {
        let before = lock(&self.state).open.end().flatten();
        if !self.after.is_now(run) || (self.form != Form::Always && !outcome.is_changed()) {
            return Ok(());
        }
        let heading = format!("after {}", run.name());
        match (self.form, &before) {
            (Form::Diff, Some(before)) => self.print_diff(before, module, run.name()),
            (_, Some(before)) => {
                let texts = before.texts();
                let text = ModuleText::new(module, &self.options);
                self.print_text(module, &text, &heading, |key, text| texts.get(&key).is_none_or(|t| *t != text))
            }
            (_, None) => self.print_text(module, &ModuleText::new(module, &self.options), &heading, |_, _| true),
        }
    }

    fn on_error(&self, _: &Module, run: &PassRun<'_>, _: &PassFailure) {
        let state = &mut *lock(&self.state);
        state.open.end();
        if self.after.is_now(run) {
            // The failure is reported elsewhere, even if this cannot be written.
            let _ = state.to.print(|to| writeln!(to, "// {} failed, and its changes were rolled back\n", run.name()));
        }
    }
}

anfora_ir::brief_debug! { PrintIr; }
