//! Renders diagnostics for users: file, line and column, the line with the place underlined, and
//! the suggestion.

pub(crate) mod json;
mod lines;
mod printed;

use std::fmt;
use std::ops::Range;

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet};

use crate::core::module::Module;
use crate::report::diagnostic::{Diagnostic, Severity};
use crate::report::diagnostics::Diagnostics;
use crate::report::source::Source;
use lines::{Excerpt, Lines};
use printed::printed_lines;

pub use json::{diagnostics_json, diagnostics_json_with};

/// The most columns of a line of the source that are shown.
const COLUMNS: usize = 160;

/// Options for rendering diagnostics.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct RenderOptions {
    /// The use of colours in the output.
    pub color: Color,
}

/// The choice of colours.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Color {
    /// Plain text.
    #[default]
    Never,
    /// Text with the escape sequences of a terminal.
    Always,
}

/// Renders diagnostics one after the other. Those with a span are shown in the source; the others
/// name the function and the binding.
///
/// A span may be out of range: it is moved inside the text and to the boundaries of characters. Of
/// a span of several lines, the first line is shown; of a long line, a part. Linear in the text
/// (once) and the diagnostics.
pub fn render_diagnostics(diagnostics: &[Diagnostic], source: Option<&Source>, options: &RenderOptions) -> String {
    render(diagnostics, source, None, options)
}

/// Renders diagnostics about a module. A diagnostic with a span is shown in the source that the
/// module was read from, if the module keeps it. Any other is shown at the line of the printed
/// module that binds the value that the diagnostic is about. Linear in the source, the diagnostics,
/// and the functions that they name.
pub fn render_module_diagnostics(diagnostics: &[Diagnostic], module: &Module, options: &RenderOptions) -> String {
    render(diagnostics, module.source().map(|s| &**s), Some(module), options)
}

fn render(
    diagnostics: &[Diagnostic],
    source: Option<&Source>,
    module: Option<&Module>,
    options: &RenderOptions,
) -> String {
    let renderer = match options.color {
        Color::Always => Renderer::styled(),
        Color::Never => Renderer::plain(),
    }
    // Lines are already cut around the place; the margin has the line numbers.
    .term_width(COLUMNS + 40);
    let text = source.filter(|_| diagnostics.iter().any(|d| d.span.is_some())).map(|s| (s, Lines::new(s.text())));
    let printed = module.map(|m| printed_lines(diagnostics, m)).unwrap_or_default();
    let mut out = String::new();
    for (i, d) in diagnostics.iter().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        let shown = match (&d.span, &text, printed.get(&i)) {
            (Some(span), Some((source, lines)), _) => {
                let related =
                    d.related.iter().map(|(span, label)| Shown::new(source.name(), lines.excerpt(span), Some(label)));
                std::iter::once(Shown::new(source.name(), lines.excerpt(span), d.label.as_deref()))
                    .chain(related)
                    .collect()
            }
            (None, _, Some(line)) => {
                let lines = Lines::new(&line.text);
                let mut excerpt = lines.excerpt(&line.span);
                excerpt.position.line = line.number;
                let function = d.function.as_deref().unwrap_or_default();
                vec![Shown {
                    path: format!("@{function}, as printed"),
                    excerpt: excerpt.into_owned(),
                    label: d.label.as_deref(),
                }]
            }
            _ => Vec::new(),
        };
        // If no line shows the function or binding, the title names them.
        let is_shown = match printed.get(&i) {
            Some(line) => !line.is_head || d.binding.is_none(),
            None => !shown.is_empty(),
        };
        let title = if is_shown { d.message.clone() } else { format!("{}{}", d.message, d.place_in_words()) };
        render_one(&mut out, d, &title, &shown, &renderer);
        out.push('\n');
    }
    out
}

/// A place as it is shown: the path of its text, the part of the line, and the label under it.
struct Shown<'d> {
    path: String,
    excerpt: Excerpt<'d>,
    label: Option<&'d str>,
}

impl<'d> Shown<'d> {
    fn new(path: &str, excerpt: Excerpt<'d>, label: Option<&'d (impl AsRef<str> + ?Sized)>) -> Shown<'d> {
        Shown { path: path.to_string(), excerpt, label: label.map(AsRef::as_ref) }
    }

    fn snippet(&self, kind: AnnotationKind) -> Snippet<'_, Annotation<'_>> {
        let Excerpt { text, span, position } = &self.excerpt;
        let annotation = kind.span(Range::clone(span)).label(self.label);
        Snippet::source(&**text).line_start(position.line).path(self.path.as_str()).annotation(annotation)
    }

    /// Returns the line and column as they are rendered, counted in the shown text, and the actual
    /// ones.
    fn rendered_position(&self) -> (String, String) {
        let Excerpt { text, span, position } = &self.excerpt;
        let shown = text[..span.start].chars().count() + 1;
        let at = |column| format!("{}:{}:{column}", self.path, position.line);
        (at(shown), at(position.column))
    }
}

fn render_one(out: &mut String, d: &Diagnostic, title: &str, shown: &[Shown<'_>], renderer: &Renderer) {
    let level = match d.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
        Severity::Remark => Level::INFO.with_name("remark"),
    };
    let mut group = Group::with_title(level.primary_title(title));
    for (i, s) in shown.iter().enumerate() {
        let kind = if i == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
        group = group.element(s.snippet(kind));
    }
    if let Some(help) = &d.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    let text = renderer.render(&[group]);
    // The columns of lines that are shown in part count from the cut. Replace them.
    let mut done = text.find('\n').unwrap_or(0);
    out.push_str(&text[..done]);
    for s in shown {
        let (rendered, actual) = s.rendered_position();
        let Some(at) = text.get(done..).and_then(|rest| rest.find(&rendered)) else { continue };
        out.push_str(&text[done..done + at]);
        out.push_str(&actual);
        done += at + rendered.len();
    }
    out.push_str(&text[done..]);
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = render_diagnostics(self, self.source().map(|s| &**s), &RenderOptions::default());
        f.write_str(text.trim_end_matches('\n'))
    }
}
