//! Pipelines that have a name and options.

use std::sync::Arc;

use crate::config::{ConfigError, OptionDef, Options};

/// The passes that the name of a pipeline stands for: a text, or a text that follows from options.
#[derive(Clone)]
pub struct PipelineText {
    options: &'static [OptionDef],
    write: Arc<WriteText>,
}

type WriteText = dyn Fn(&Options) -> Result<String, ConfigError> + Send + Sync;

impl PipelineText {
    /// Declares the options of a pipeline, and the function that writes the text for their values.
    /// The function is called with a value that fits for each option. If it returns an error, the
    /// pipeline is not made.
    ///
    /// Cost: one entry.
    pub fn with_options(
        options: &'static [OptionDef],
        write: impl Fn(&Options) -> Result<String, ConfigError> + Send + Sync + 'static,
    ) -> PipelineText {
        PipelineText { options, write: Arc::new(write) }
    }

    /// Returns the pipeline that runs further passes after this one.
    pub(crate) fn followed_by(self, last: String) -> PipelineText {
        let PipelineText { options, write } = self;
        PipelineText::with_options(options, move |options| {
            let passes = write(options)?;
            let comma = if passes.trim().is_empty() { "" } else { "," };
            Ok(format!("{passes}{comma}{last}"))
        })
    }
}

impl From<String> for PipelineText {
    fn from(text: String) -> PipelineText {
        PipelineText::with_options(&[], move |_| Ok(text.clone()))
    }
}

impl From<&str> for PipelineText {
    fn from(text: &str) -> PipelineText {
        text.to_string().into()
    }
}

/// A pipeline that can be used by name.
#[derive(Clone, Debug)]
pub struct PipelineEntry {
    /// The name.
    pub name: String,
    /// The text that the name stands for, with the options at their defaults.
    pub text: String,
    /// The options of the pipeline.
    pub options: &'static [OptionDef],
    /// A line of documentation.
    pub doc: String,
    /// The text for other values of the options.
    passes: PipelineText,
}

impl PipelineEntry {
    pub(crate) fn new(name: String, passes: PipelineText, doc: String) -> Result<PipelineEntry, ConfigError> {
        let options = passes.options;
        let text = (passes.write)(&Options::new(&name, options))?;
        Ok(PipelineEntry { name, text, options, doc, passes })
    }

    /// Returns the text that the name stands for with options.
    pub(crate) fn text_with(&self, options: &Options) -> Result<String, ConfigError> {
        (self.passes.write)(options)
    }
}

anfora_ir::brief_debug! { PipelineText; }
