//! The options that set the context of passes.

use std::sync::Arc;

use anfora::manager::{PassContext, PassContextBuilder, PassRegistry};
use clap::Args;

/// The settings of a context of passes.
#[derive(Args)]
pub(crate) struct PassSettings {
    /// Sets the level of the context, 0 to 3, and without a pipeline runs the pipeline of the level
    #[arg(short = 'O', value_name = "LEVEL", default_value_t = 2, value_parser = clap::value_parser!(u8).range(0..=3))]
    pub(crate) level: u8,
    /// Skips a pass
    #[arg(long, value_name = "PASS")]
    pub(crate) disable: Vec<String>,
    /// Runs a pass at any level
    #[arg(long, value_name = "PASS")]
    require: Vec<String>,
    /// Sets a configuration option; the command `configs` lists them
    #[arg(long, value_name = "KEY=VALUE")]
    config: Vec<String>,
}

impl PassSettings {
    /// Returns a builder of a context with these settings, without instruments.
    pub(crate) fn builder(&self, registry: &Arc<PassRegistry>) -> PassContextBuilder {
        let mut builder = PassContext::builder().registry(Arc::clone(registry)).opt_level(self.level);
        for pass in &self.disable {
            builder = builder.disable(pass.clone());
        }
        for pass in &self.require {
            builder = builder.require(pass.clone());
        }
        for setting in &self.config {
            builder = builder.config_text(setting.clone());
        }
        builder
    }
}
