//! The answers to `anfora opt --why-not`.

use std::borrow::Cow;
use std::collections::BTreeSet;

use anfora::ir::{LogPosition, Module, NearMisses, WhyNot, binding_label};
use anfora::manager::{PassContext, UnknownName};

use crate::report;

/// The questions of a user: which rewrites nearly applied, and why they did not.
pub(crate) struct Questions<'a> {
    asked: &'a [WhyNot],
    /// The labels of the bindings before the passes; empty if nobody asks about a binding.
    bindings: BTreeSet<String>,
}

impl Questions<'_> {
    /// Takes the questions about a program, before the passes run.
    pub(crate) fn new<'a>(asked: &'a [WhyNot], module: &Module) -> Questions<'a> {
        let mut questions = Questions { asked, bindings: BTreeSet::new() };
        questions.add_bindings(module);
        questions
    }

    fn add_bindings(&mut self, module: &Module) {
        if self.asked.iter().all(|asked| asked.binding.is_none()) {
            return;
        }
        for (_, function) in module.functions() {
            let body = &function.body;
            let variables = body.exprs().filter(|&(id, _)| body.as_var(id).is_some());
            let labels = variables.filter_map(|(id, _)| binding_label(&module.cx, body, id));
            self.bindings.extend(labels.map(Cow::into_owned));
        }
    }

    /// Prints the answers, after the passes have run. A question without an answer has a line that
    /// says so; if it names something that does not exist, the line suggests another name.
    pub(crate) fn answer(mut self, module: &Module, context: &PassContext) {
        if self.asked.is_empty() {
            return;
        }
        self.add_bindings(module);
        let NearMisses { found, left_out, is_cut } =
            context.rewrites().read_near_misses(&mut LogPosition::default(), self.asked);
        found.iter().for_each(|miss| report::say(&miss.to_string()));
        if left_out > 0 {
            report::say(&format!("why not: {left_out} more near misses"));
        }
        if is_cut {
            report::say("why not: there may be more near misses; ask for a rule, a pass or a binding");
        }
        let names = context.rewrites().explained_names();
        for asked in self.asked.iter().filter(|asked| !found.iter().any(|miss| asked.selects(miss))) {
            report::say(&format!("why not {asked}: {}", self.without_answer(asked, &names, context)));
        }
    }

    /// Returns the reason why a question has no answer. `names` are those of the passes that ran
    /// and of their rules.
    fn without_answer(&self, asked: &WhyNot, names: &[String], context: &PassContext) -> String {
        if let Some(what) = asked.what.as_ref().filter(|what| !names.contains(what)) {
            if context.registry().contains(what) {
                return format!("`{what}` did not run");
            }
            let passes = context.registry().passes().iter().map(|pass| pass.name());
            return UnknownName::new("pass or rule", what, passes.chain(names.iter().map(String::as_str))).to_string();
        }
        match &asked.binding {
            Some(binding) if !self.bindings.contains(binding) => {
                UnknownName::new("binding", binding, self.bindings.iter().map(String::as_str)).to_string()
            }
            _ => "nothing that was asked for nearly applied".to_string(),
        }
    }
}
