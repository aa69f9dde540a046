//! Remarks of passes, and the option that prints them.

use anfora::ir::{Module, Severity};
use anfora::manager::{PassRemark, remarks_json, render_remarks};
use clap::{Args, ValueEnum};

use crate::report;

/// The option that prints remarks.
#[derive(Args)]
pub(crate) struct Remarks {
    /// Prints all that the passes have to say, such as why something was not done, with its place
    #[arg(long = "remarks", value_name = "FORM", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "text")]
    form: Option<Form>,
}

/// The form in which messages are printed.
#[derive(Copy, Clone, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Each with its place underlined
    Text,
    /// JSON, one object per line
    Json,
}

impl Remarks {
    /// Returns true if all remarks are printed, so that a summary need not repeat them.
    pub(crate) fn are_shown(&self) -> bool {
        self.form.is_some()
    }

    /// Prints the remarks, if that was requested. After a failure the errors are left out, since
    /// the caller prints the failure.
    pub(crate) fn show<T, E>(&self, remarks: &[PassRemark], done: &Result<T, E>, module: &Module) {
        let is_shown = |r: &&PassRemark| done.is_ok() || r.diagnostic.severity != Severity::Error;
        let shown: Vec<PassRemark> = remarks.iter().filter(is_shown).cloned().collect();
        match self.form {
            Some(_) if shown.is_empty() => {}
            Some(Form::Text) => report::say(&render_remarks(&shown, module, &report::render_options())),
            Some(Form::Json) => report::say(&remarks_json(&shown, module)),
            None => {}
        }
    }
}
