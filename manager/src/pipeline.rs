//! Pipelines as text.
//!
//! ```text
//! pipeline = [ item { "," item } ]
//! item     = name [ "{" [ key "=" value { "," key "=" value } ] "}" ]
//!          | "fixpoint" "<" rounds ">" "(" pipeline ")"
//! key      = name | '"' { character | '\"' | '\\' } '"'
//! value    = text | "[" [ text { "," text } ] "]"
//! text     = word | '"' { character | '\"' | '\\' } '"'
//! ```
//! A name is that of a registered pass, or of a pipeline, which stands for its passes. Blanks and
//! line ends are allowed between any two parts. A key in quotes is the name of a number, for passes
//! that take numbers by name, and never the name of an option.

use std::fmt;
use std::sync::Arc;

use crate::config::{ConfigError, ConfigKind, Options};
use crate::config_list::quoted;
use crate::error::{MAX_NESTING, in_own_words};
use crate::info::PassInfo;
use crate::names::{UnknownName, is_name_char};
use crate::pass::Pass;
use crate::registry::{FIXPOINT, MakeError, Named, PassRegistry, RegisteredPass};
use crate::scanner::{Mistake, Scanner};
use crate::sequential::{Repeat, Sequential};

/// An error in a pipeline, with its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PipelineError {
    /// The text.
    pub text: String,
    /// The character of the text that the error is about, counted from 1.
    pub column: usize,
    /// The message.
    pub message: String,
    /// The name that was probably meant.
    pub suggestion: Option<String>,
    /// The named pipelines that lead to the text, outermost first.
    pub through: Vec<String>,
}

impl fmt::Display for PipelineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for name in &self.through {
            write!(f, "in pipeline `{name}`: ")?;
        }
        write!(f, "column {}: {}", self.column, self.message)
    }
}

impl std::error::Error for PipelineError {}

in_own_words!(PipelineError);

impl PipelineError {
    /// Returns the text with a mark under the place, in two lines; for a long text, only the part
    /// around the place.
    pub fn marked(&self) -> String {
        const BEFORE: usize = 50;
        let skipped = self.column.saturating_sub(BEFORE + 1);
        let line: String =
            self.text.chars().skip(skipped).take(76).map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
        format!("{line}\n{}^", " ".repeat(self.column - 1 - skipped))
    }
}

/// Parses a pipeline. Its names are looked up in the registry.
///
/// # Errors
/// If the text is not of the form above, nests more than [`MAX_NESTING`] deep, or names a pass, an
/// option or a value that does not exist.
pub fn parse_pipeline(registry: &PassRegistry, text: &str) -> Result<Sequential, PipelineError> {
    // A text that is the name of a pipeline stands for that pipeline, and not for a sequence that
    // holds it.
    let whole = match registry.find(text.trim()) {
        Ok(Named::Pipeline(i)) => {
            let pipeline = &registry.pipelines()[i];
            Text::new(Some(&pipeline.name), &pipeline.text)
        }
        _ => Text::new(None, text),
    };
    Parser { registry, texts: vec![whole], groups: vec![Group::new(Closing::End, 1)] }.run()
}

/// A text that is being parsed: the given text, or that of a named pipeline.
struct Text {
    name: Option<String>,
    scanner: Scanner,
}

impl Text {
    fn new(name: Option<&str>, text: &str) -> Text {
        Text { name: name.map(str::to_string), scanner: Scanner::new(text) }
    }
}

/// The passes of an open group.
struct Group {
    closing: Closing,
    passes: Vec<Arc<dyn Pass>>,
    /// The column where the group opened.
    column: usize,
}

enum Closing {
    /// The end of the text.
    End,
    /// A parenthesis; the group is repeated.
    Fixpoint(u32),
}

impl Group {
    fn new(closing: Closing, column: usize) -> Group {
        Group { closing, passes: Vec::new(), column }
    }
}

struct Parser<'a> {
    registry: &'a PassRegistry,
    texts: Vec<Text>,
    groups: Vec<Group>,
}

/// The next thing that is expected.
#[derive(Copy, Clone, PartialEq)]
enum Expect {
    /// An item, or the end of an empty group.
    First,
    /// An item, after a comma.
    Item,
    /// A comma or the end of the group, after an item.
    Rest,
}

impl<'a> Parser<'a> {
    fn run(&mut self) -> Result<Sequential, PipelineError> {
        let mut expect = Expect::First;
        loop {
            let text = self.text();
            text.skip_blanks();
            let column = text.at + 1;
            match text.peek() {
                Some(',') if expect == Expect::Rest => {
                    text.at += 1;
                    expect = Expect::Item;
                }
                Some(c) if c.is_alphabetic() && expect != Expect::Rest => {
                    expect = self.item(column)?;
                }
                Some(')') if expect != Expect::Item && matches!(self.innermost(), Closing::Fixpoint(_)) => {
                    self.text().at += 1;
                    self.close()?;
                    expect = Expect::Rest;
                }
                None if expect != Expect::Item && matches!(self.innermost(), Closing::End) => {
                    if let Some(done) = self.close()? {
                        return Ok(done);
                    }
                    expect = Expect::Rest;
                }
                None if expect != Expect::Item => {
                    let opened = self.groups.last().map_or(1, |g| g.column);
                    return Err(self.error(column, format!("the `(` of column {opened} is not closed")));
                }
                found => {
                    let wanted = match (expect, self.innermost()) {
                        (Expect::Rest, Closing::End) => "`,` or the end",
                        (Expect::Rest, Closing::Fixpoint(_)) => "`,` or `)`",
                        _ => "the name of a pass",
                    };
                    return Err(self.unexpected(column, wanted, found));
                }
            }
        }
    }

    fn innermost(&self) -> &Closing {
        &self.groups.last().expect("the group of the given text is on the stack until the end").closing
    }

    fn text(&mut self) -> &mut Scanner {
        &mut self.texts.last_mut().expect("the given text is on the stack until the end").scanner
    }

    /// Reads an item. If it opens a group, the loop reads the group.
    fn item(&mut self, column: usize) -> Result<Expect, PipelineError> {
        let name = self.text().take_while(is_name_char);
        if name == FIXPOINT {
            return self.fixpoint(column);
        }
        let registry = self.registry;
        match registry.find(&name) {
            Ok(Named::Pass(i)) => {
                let pass = &registry.passes()[i];
                let options = self.options(pass)?;
                let made = registry.make_with(pass, &options).map_err(|e| self.make_error(column, &e))?;
                self.push(made);
                Ok(Expect::Rest)
            }
            Ok(Named::Pipeline(i)) => {
                let pipeline = &registry.pipelines()[i];
                if let Some(from) = self.texts.iter().position(|t| t.name.as_ref() == Some(&name)) {
                    let mut names: Vec<&str> = self.texts[from..].iter().filter_map(|t| t.name.as_deref()).collect();
                    names.push(&name);
                    let message = format!("pipelines name each other: {}", names.join(" -> "));
                    return Err(self.error(column, message));
                }
                self.open(Closing::End, column)?;
                self.texts.push(Text::new(Some(&name), &pipeline.text));
                Ok(Expect::First)
            }
            Err(unknown) => Err(self.unknown(column, &unknown)),
        }
    }

    fn fixpoint(&mut self, column: usize) -> Result<Expect, PipelineError> {
        self.expect('<', "`<` and a number of rounds")?;
        let text = self.text();
        text.skip_blanks();
        let at = text.at + 1;
        let digits = text.take_while(is_name_char);
        let rounds = match digits.parse::<u32>() {
            Ok(rounds) if rounds > 0 => rounds,
            _ => return Err(self.error(at, format!("a number of rounds is a whole number from 1, not `{digits}`"))),
        };
        self.expect('>', "`>`")?;
        let opened = self.text().at + 1;
        self.expect('(', "`(`")?;
        self.open(Closing::Fixpoint(rounds), opened.max(column))?;
        Ok(Expect::First)
    }

    fn open(&mut self, closing: Closing, column: usize) -> Result<(), PipelineError> {
        // The group of the given text is one of them.
        if self.groups.len() == MAX_NESTING {
            return Err(self.error(column, format!("pipelines nest at most {MAX_NESTING} deep")));
        }
        self.groups.push(Group::new(closing, column));
        Ok(())
    }

    /// Closes the innermost group. Returns the whole sequence if the group is that of the given
    /// text.
    fn close(&mut self) -> Result<Option<Sequential>, PipelineError> {
        let Group { closing, passes, column } = self.groups.pop().expect("it was just looked at");
        let nested = |_| format!("passes nest more than {MAX_NESTING} deep");
        match closing {
            Closing::Fixpoint(rounds) => {
                let made = Repeat::new(passes, rounds).map_err(|e| self.error(column, nested(e)))?;
                self.push(Arc::new(made));
            }
            Closing::End => {
                let name = self.texts.last().and_then(|t| t.name.clone());
                let info = PassInfo::new(name.as_deref().unwrap_or("pipeline"), 0);
                let made = Sequential::named(info, passes).map_err(|e| self.error(column, nested(e)))?;
                if self.groups.is_empty() {
                    return Ok(Some(made));
                }
                self.texts.pop();
                self.push(Arc::new(made));
            }
        }
        Ok(None)
    }

    /// Reads `{key=value,…}`, if it is present.
    fn options(&mut self, pass: &RegisteredPass) -> Result<Options, PipelineError> {
        let mut options = Options::new(pass.name(), pass.options());
        if !self.text().take('{') {
            return Ok(options);
        }
        let mut given: Vec<String> = Vec::new();
        let mut is_first = true;
        while !self.text().take('}') {
            if !std::mem::take(&mut is_first) {
                self.expect(',', "`,` or `}`")?;
            }
            let text = self.text();
            text.skip_blanks();
            let key_at = text.at + 1;
            let is_quoted = text.peek() == Some('"');
            let key = if is_quoted { self.value()? } else { text.take_while(is_name_char) };
            let text = self.text();
            if key.is_empty() && !is_quoted {
                let found = text.peek();
                return Err(self.unexpected(key_at, "the name of an option", found));
            }
            if !is_quoted && given.contains(&key) {
                return Err(self.error(key_at, format!("`{key}` is given more than once")));
            }
            self.expect('=', "`=`")?;
            self.text().skip_blanks();
            let value_at = self.text().at + 1;
            let kind = pass.options().iter().find(|o| o.key == key).map(|o| &o.kind);
            let takes_list = matches!(kind, Some(ConfigKind::IntList { .. } | ConfigKind::TextList { .. }));
            let value = match self.text().peek() {
                // A list for an option of another kind is reported as an error of its kind. A text
                // that looks like a list needs quotes.
                Some('[') if takes_list || kind.is_none() => self.list()?,
                Some('[') => {
                    let (list, kind) = (self.list()?, kind.map_or(String::new(), ToString::to_string));
                    return Err(self.error(value_at, format!("`{key}` takes {kind}, not `{list}`")));
                }
                _ => self.value()?,
            };
            let set = match is_quoted {
                true => options.set_number(&key, &value),
                false => options.set_text(&key, &value),
            };
            set.map_err(|e| match e {
                ConfigError::Twice(_) => self.error(key_at, e.to_string()),
                ConfigError::Unknown(unknown)
                    if unknown.name == key && !pass.options().iter().any(|o| o.key == key) =>
                {
                    self.unknown(key_at, &unknown)
                }
                ConfigError::Unknown(unknown) => self.unknown(value_at, &unknown),
                other => self.error(value_at, other.to_string()),
            })?;
            // A name in quotes is that of a number, even if an option has this name.
            if !is_quoted {
                given.push(key);
            }
        }
        Ok(options)
    }

    /// Reads a list, and returns it as it is written without blanks.
    fn list(&mut self) -> Result<String, PipelineError> {
        let items = self.text().list().map_err(|mistake| self.mistake(&mistake))?;
        let items: Vec<String> = items.iter().map(|item| quoted(item)).collect();
        Ok(format!("[{}]", items.join(",")))
    }

    fn value(&mut self) -> Result<String, PipelineError> {
        self.text().value().map_err(|mistake| self.mistake(&mistake))
    }

    fn push(&mut self, pass: Arc<dyn Pass>) {
        self.groups.last_mut().expect("the group of the given text is on the stack until the end").passes.push(pass);
    }

    fn expect(&mut self, c: char, wanted: &'static str) -> Result<(), PipelineError> {
        self.text().expect(c, wanted).map_err(|mistake| self.mistake(&mistake))
    }

    // ---- Errors ----

    fn error(&self, column: usize, message: String) -> PipelineError {
        let text = self.texts.last().map_or_else(String::new, |t| t.scanner.chars.iter().collect());
        let through = self.texts.iter().filter_map(|t| t.name.clone()).collect();
        PipelineError { text, column, message, suggestion: None, through }
    }

    fn mistake(&self, mistake: &Mistake) -> PipelineError {
        let at = mistake.at;
        match mistake.wanted {
            Some(wanted) => {
                let found = self.texts.last().and_then(|t| t.scanner.chars.get(at).copied());
                self.unexpected(at + 1, wanted, found)
            }
            None => self.error(at + 1, "the text is not closed with `\"`".to_string()),
        }
    }

    fn unexpected(&self, column: usize, wanted: &str, found: Option<char>) -> PipelineError {
        let found = found.map_or_else(|| "the end".to_string(), |c| format!("`{c}`"));
        self.error(column, format!("expected {wanted}, found {found}"))
    }

    fn unknown(&self, column: usize, unknown: &UnknownName) -> PipelineError {
        PipelineError { suggestion: unknown.suggestion.clone(), ..self.error(column, unknown.to_string()) }
    }

    fn make_error(&self, column: usize, error: &MakeError) -> PipelineError {
        match error {
            MakeError::Unknown(unknown) => self.unknown(column, unknown),
            MakeError::Failed { .. } => self.error(column, error.to_string()),
        }
    }
}
