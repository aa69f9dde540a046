//! Printing of modules between passes.

use std::collections::HashMap;
use std::io::{self, Write};
use std::iter::once;
use std::sync::Mutex;

use anfora_ir::{FunctionKey, Module, ModuleText, PrintOptions, write_unified_diff};

use crate::error::{PassError, PassFailure};
use crate::info::{Outcome, PassKind};
use crate::instrument::{Instrument, PassRun};
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

    /// Returns true if a part of a module is shown, given its title.
    fn shows(&self, title: &str) -> bool {
        let is_named = |names: &Vec<String>| names.iter().any(|name| title.strip_prefix('@') == Some(name));
        self.functions.as_ref().is_none_or(is_named)
    }

    /// Prints to the output.
    fn print(&self, print: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), PassError> {
        lock(&self.state).to.print(print)
    }

    /// Prints the module, or those of the selected functions whose text is not that of `old`.
    fn print_text(&self, new: &Snapshot, old: Option<&Snapshot>, heading: &str) -> Result<(), PassError> {
        self.print(|to| {
            if self.functions.is_none() {
                return writeln!(to, "// {heading}\n{}", new.text.text());
            }
            let (was, is) = (old.map(Snapshot::parts).unwrap_or_default(), new.parts());
            let is_new = |key: &Option<FunctionKey>| was.get(key).map(|part| part.1) != is.get(key).map(|part| part.1);
            let mut heading = Some(heading);
            for (title, text) in new.keys().filter(is_new).filter_map(|key| is.get(&key)) {
                if self.shows(title) {
                    heading.take().iter().try_for_each(|heading| writeln!(to, "// {heading}"))?;
                    writeln!(to, "{text}")?;
                }
            }
            Ok(())
        })
    }

    /// Prints the changes of each selected function.
    fn print_diff(&self, old: &Snapshot, new: &Snapshot, pass: &str) -> Result<(), PassError> {
        let (was, is) = (old.parts(), new.parts());
        let kept =
            |of: &Snapshot, in_other: &Parts<'_>| of.keys().filter(|k| in_other.contains_key(k)).collect::<Vec<_>>();
        let reordered = self.functions.is_none() && kept(old, &is) != kept(new, &was);
        let gone = old.keys().filter(|key| !is.contains_key(key));
        self.print(|to| {
            writeln!(to, "// after {pass}")?;
            let mut is_same = true;
            for key in new.keys().chain(gone) {
                let parts = [was.get(&key), is.get(&key)];
                let [before, after] = parts.map(|part| part.map_or("", |part| part.1));
                if before != after && parts.into_iter().flatten().any(|part| self.shows(&part.0)) {
                    let title = |i: usize, when: &str| match parts[i] {
                        Some((title, _)) => format!("{title} {when} {pass}"),
                        None => "/dev/null".to_string(),
                    };
                    write_unified_diff([&title(0, "before"), &title(1, "after")], before, after, to)?;
                    is_same = false;
                }
            }
            if reordered {
                writeln!(to, "// the functions are in another order")?;
            } else if is_same {
                writeln!(to, "// nothing that is shown is different")?;
            }
            writeln!(to)
        })
    }
}

/// The parts of the text of a module, with their titles: the functions, and what stands before them
/// under no key.
type Parts<'a> = HashMap<Option<FunctionKey>, (String, &'a str)>;

/// The text of a module.
struct Snapshot {
    text: ModuleText,
    names: HashMap<FunctionKey, String>,
}

impl Snapshot {
    fn new(module: &Module, options: &PrintOptions) -> Snapshot {
        let names = module.order().iter().map(|&key| (key, format!("@{}", module.name(key)))).collect();
        Snapshot { text: ModuleText::new(module, options), names }
    }

    fn keys(&self) -> impl Iterator<Item = Option<FunctionKey>> {
        once(None).chain(self.text.functions().map(|(key, _)| Some(key)))
    }

    fn parts(&self) -> Parts<'_> {
        let title = |key| self.names.get(&key).cloned().unwrap_or_default();
        let functions = self.text.functions().map(|(key, text)| (Some(key), (title(key), text)));
        once((None, ("the module".to_string(), self.text.head()))).chain(functions).collect()
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
        let (is_compared, is_printed) = (is_compared && self.after.is_now(run), self.before.is_now(run));
        let snapshot = (is_compared || is_printed).then(|| Snapshot::new(module, &self.options));
        if let (true, Some(snapshot)) = (is_printed, &snapshot) {
            self.print_text(snapshot, None, &format!("before {}", run.name()))?;
        }
        lock(&self.state).open.begin(run, snapshot.filter(|_| is_compared));
        Ok(())
    }

    fn run_after(&self, module: &Module, run: &PassRun<'_>, outcome: &Outcome) -> Result<(), PassError> {
        let before = lock(&self.state).open.end().flatten();
        if !self.after.is_now(run) || (self.form != Form::Always && !outcome.is_changed()) {
            return Ok(());
        }
        let after = Snapshot::new(module, &self.options);
        match (self.form, &before) {
            (Form::Diff, Some(before)) => self.print_diff(before, &after, run.name()),
            (_, before) => self.print_text(&after, before.as_ref(), &format!("after {}", run.name())),
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
