//! Recordings of passes, and one page of HTML for a recording or for the differences of programs.
//!
//! A [`Recorder`] is an instrument that makes a [`Recording`]: the passes that ran, the lines that
//! each changed, and the history of each binding. A [`Page`] shows a recording: the passes on a
//! bar, what the chosen pass changed, the history of a binding and its neighbours as a graph, and
//! the memory of the run. A [`DiffPage`] shows the [`Differences`](anfora_ir::Differences) of two
//! programs. A page holds its style, its script and its data. It loads nothing else: its
//! Content-Security-Policy forbids that. It works with the keyboard, on wide and narrow screens,
//! and in light and dark colours.
//!
//! The recording is in the page as JSON ([`Recording::to_json`]), in which one character stands for
//! each long name. The script of the page (`assets/*.js`) makes each view when it is opened.
//!
//! ```
//! use std::sync::Arc;
//! use anfora_ir::{Module, OpRegistry};
//! use anfora_manager::{FunctionPass, Pass, PassContext};
//! use anfora_report::{Page, Recorder};
//!
//! let recorder = Arc::new(Recorder::new());
//! let cx = PassContext::builder().instrument(recorder.clone()).build()?;
//! let mut module = Module::new(Arc::new(OpRegistry::new()));
//! FunctionPass::new("Nothing", 0, |_, _, _| Ok(())).apply(&mut module, &cx)?;
//!
//! let recording = recorder.recording();
//! let page = Page { title: "empty.anf", ..Page::new(&recording) };
//! assert!(page.to_html().contains("<title>empty.anf"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod differences;
mod recorder;
mod recording;
mod short_names;

use askama::Template;
use serde_json::{Value, json};

pub use differences::DiffPage;
pub use recorder::Recorder;
pub use recording::{
    BindingEvent, BindingEventKind, FunctionChange, Hunk, LineKind, MAX_FUNCTIONS_OF_RUN, MAX_MESSAGES_OF_RUN,
    MAX_RECORDED_RUNS, MAX_RECORDING_BYTES, MAX_ROWS_OF_PROGRAM, MAX_ROWS_OF_RUN, RecordedLine, RecordedOutcome,
    RecordedPass, RecordedRewrite, Recording,
};

/// A page that shows a recording.
#[derive(Clone, Debug)]
pub struct Page<'r> {
    /// The passes, and what they changed.
    pub recording: &'r Recording,
    /// The title, such as the name of the file.
    pub title: &'r str,
    /// The pipeline as text; empty if there is none.
    pub pipeline: &'r str,
    /// The command that makes the same page; empty if there is none.
    pub command: &'r str,
    /// Further facts about the run, each with its name.
    pub facts: Vec<(String, String)>,
}

/// The script of the page: the elements of all pages, the reading of the recording, then the parts
/// of the page.
const PROGRAM: &str = concat!(
    include_str!("../assets/elements.js"),
    include_str!("../assets/recording.js"),
    include_str!("../assets/passes.js"),
    include_str!("../assets/binding.js"),
    include_str!("../assets/page.js"),
);

#[derive(Template)]
#[template(path = "recording.html")]
struct PageTemplate<'r> {
    title: &'r str,
    style: &'static str,
    program: &'static str,
    data: String,
}

impl<'r> Page<'r> {
    /// Returns a page without a title, a pipeline and facts.
    pub fn new(recording: &'r Recording) -> Page<'r> {
        Page { recording, title: "", pipeline: "", command: "", facts: Vec::new() }
    }

    /// Returns the page as HTML. Linear in the recording.
    pub fn to_html(&self) -> String {
        let template = PageTemplate {
            title: self.title,
            style: include_str!("../assets/page.css"),
            program: PROGRAM,
            data: in_script(&self.data()),
        };
        template.render().expect("writing to a string succeeds")
    }

    /// Returns the data of the page.
    fn data(&self) -> Value {
        let mut recording = self.recording.to_json();
        short_names::shorten(&mut recording);
        json!({
            "title": self.title,
            "pipeline": self.pipeline,
            "command": self.command,
            "facts": self.facts,
            "recording": recording,
        })
    }
}

/// Returns JSON as the text of a `script` element: nothing in it can end the element or begin a
/// comment.
fn in_script(data: &Value) -> String {
    data.to_string().replace('<', "\\u003c")
}
