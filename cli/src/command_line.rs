//! The name, the passes and the operators of a command line.

use std::ffi::OsString;
use std::process::Command;
use std::sync::{Arc, OnceLock};

use anfora::ir::OpRegistry;
use anfora::manager::PassRegistry;
use anfora::onnx::convert::Conversions;
use anfora::onnx::{ExportOptions, ImportOptions};

/// A command line: its name, and the passes and operators that its commands use.
///
/// The default is the program `anfora`. A program with passes or operators of its own starts from
/// [`CommandLine::new`] and replaces the parts that differ. Each part is the only source of what it
/// holds: `passes` lists exactly the passes of the registry, and a pipeline may name them.
///
/// ```no_run
/// use std::process::ExitCode;
///
/// use anfora::manager::{FunctionPass, PassRegistry};
/// use anfora::passes::FromRules;
/// use anfora::visit::rules;
/// use anfora_cli::{CommandLine, main_with};
///
/// fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
///     let mut passes = PassRegistry::clone(&anfora::passes::registry());
///     let rules = rules!["divide(%x, 2f)" => "multiply(%x, 0.5f)"];
///     let halves = FunctionPass::from_rules("Halves", 1, rules);
///     passes.register_pass(halves, "divides by two by multiplying")?;
///     let program = CommandLine::new("mine", env!("CARGO_PKG_VERSION")).passes(passes);
///     Ok(ExitCode::from(main_with(program, std::env::args_os())))
/// }
/// ```
#[derive(Clone)]
pub struct CommandLine {
    name: &'static str,
    version: &'static str,
    about: &'static str,
    // A command makes the standard ones when it first needs them, on its own thread.
    passes: OnceLock<Arc<PassRegistry>>,
    operators: OnceLock<Arc<OpRegistry>>,
    conversions: OnceLock<Conversions>,
    /// The program and the arguments that start this command line again, if they are not the path
    /// of the running program.
    started_by: Option<(OsString, Vec<OsString>)>,
}

impl Default for CommandLine {
    fn default() -> CommandLine {
        CommandLine::new("anfora", env!("CARGO_PKG_VERSION"))
    }
}

impl CommandLine {
    /// Returns a command line with the standard passes, operators and conversions.
    pub fn new(name: &'static str, version: &'static str) -> CommandLine {
        CommandLine {
            name,
            version,
            about: "Compiler passes that cannot overflow the stack, over programs in A-normal form",
            passes: OnceLock::new(),
            operators: OnceLock::new(),
            conversions: OnceLock::new(),
            started_by: None,
        }
    }

    /// Sets the line that the help begins with.
    pub fn about(self, about: &'static str) -> CommandLine {
        CommandLine { about, ..self }
    }

    /// Sets the passes, settings and pipelines. Start from a clone of [`anfora::passes::registry`]:
    /// some commands run standard passes, and fail if the registry has no pass of that name.
    pub fn passes(self, passes: impl Into<Arc<PassRegistry>>) -> CommandLine {
        CommandLine { passes: passes.into().into(), ..self }
    }

    /// Sets the operators of programs. Start from a clone of [`anfora::onnx::registry`]: `gen` and
    /// `stress` make programs of standard operators, and ONNX files bring those that have no
    /// counterpart.
    pub fn operators(self, operators: impl Into<Arc<OpRegistry>>) -> CommandLine {
        CommandLine { operators: operators.into().into(), ..self }
    }

    /// Sets the conversions of operators from and to ONNX. Start from
    /// [`Conversions::default`](anfora::onnx::convert::Conversions).
    pub fn conversions(self, conversions: Conversions) -> CommandLine {
        CommandLine { conversions: conversions.into(), ..self }
    }

    /// Sets the program that runs this command line, with the arguments that come before those of
    /// the command line. `stress` and `replay --child` start it again. The default is the path of
    /// the running program, without arguments. It is wrong where an interpreter runs the command
    /// line, as Python does.
    pub fn started_by(self, program: impl Into<OsString>, arguments: Vec<OsString>) -> CommandLine {
        CommandLine { started_by: Some((program.into(), arguments)), ..self }
    }

    /// Returns the name of the program.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the passes, settings and pipelines.
    pub(crate) fn pass_registry(&self) -> &Arc<PassRegistry> {
        self.passes.get_or_init(anfora::passes::registry)
    }

    /// Returns the operators of programs.
    pub(crate) fn op_registry(&self) -> &Arc<OpRegistry> {
        self.operators.get_or_init(anfora::onnx::registry)
    }

    /// Returns the conversions of operators from and to ONNX.
    pub(crate) fn conversion_table(&self) -> &Conversions {
        self.conversions.get_or_init(Conversions::default)
    }

    /// Returns the options with which ONNX files are read.
    pub(crate) fn import_options(&self) -> ImportOptions {
        ImportOptions {
            registry: Arc::clone(self.op_registry()),
            conversions: self.conversion_table().clone(),
            ..ImportOptions::default()
        }
    }

    /// Returns the options with which ONNX files are written.
    pub(crate) fn export_options(&self) -> ExportOptions {
        ExportOptions { conversions: self.conversion_table().clone(), ..ExportOptions::default() }
    }

    /// Returns a clap command with the name, version and description of the program.
    pub(crate) fn describe(&self, command: clap::Command) -> clap::Command {
        command.name(self.name).version(self.version).about(self.about)
    }

    /// Returns a process that starts this command line again, without arguments yet.
    ///
    /// # Errors
    /// If the path of the running program is not known.
    pub(crate) fn start_again(&self) -> std::io::Result<Command> {
        let Some((program, arguments)) = &self.started_by else { return std::env::current_exe().map(Command::new) };
        let mut command = Command::new(program);
        command.args(arguments);
        Ok(command)
    }
}

anfora::ir::brief_debug! { CommandLine { name }; }
