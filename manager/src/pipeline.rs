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
//! A name is that of a registered pass, or of a pipeline, which stands for its passes. Both may
//! have options. Blanks and line ends are allowed between any two parts. A key in quotes is the
//! name of a number, for passes that take numbers by name, and never the name of an option.

use std::fmt;
use std::sync::Arc;

use crate::config::{ConfigDef, ConfigError, ConfigKind, OptionDef, Options};
use crate::error::{MAX_NESTING, in_own_words};
use crate::info::PassInfo;
use crate::named_pipeline::PipelineEntry;
use crate::names::{UnknownName, is_name_char};
use crate::pass::Pass;
use crate::registry::{FIXPOINT, MakeError, Named, PassRegistry};
use crate::scanner::{Mistake, Scanner, list_text, quoted};
use crate::sequential::{NestingError, Repeat, Sequential};

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
    let groups = vec![Group { rounds: None, passes: Vec::new(), opened: 0 }];
    let mut parser = Parser { registry, texts: vec![(None, Scanner::new(text))], groups };
    parser.run().map_err(|Mistake { at, message, suggestion }| {
        let text = parser.text().chars.iter().collect();
        let through = parser.texts.into_iter().filter_map(|(name, _)| name).collect();
        PipelineError { text, column: at + 1, message, suggestion, through }
    })
}

/// The passes of an open group.
struct Group {
    /// Present if the group ends with a parenthesis and is repeated; otherwise it ends with the
    /// text.
    rounds: Option<u32>,
    passes: Vec<Arc<dyn Pass>>,
    /// The character at which the group opened.
    opened: usize,
}

struct Parser<'a> {
    registry: &'a PassRegistry,
    /// The texts that are being parsed: the given one, and those of named pipelines in it with
    /// their names.
    texts: Vec<(Option<String>, Scanner)>,
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

impl Parser<'_> {
    fn run(&mut self) -> Result<Sequential, Mistake> {
        let mut expect = Expect::First;
        loop {
            let is_repeated = self.group().rounds.is_some();
            let text = self.text();
            text.skip_blanks();
            match text.peek() {
                Some(',') if expect == Expect::Rest => {
                    text.at += 1;
                    expect = Expect::Item;
                }
                Some(c) if c.is_alphabetic() && expect != Expect::Rest => {
                    expect = self.item()?;
                }
                Some(')') if expect != Expect::Item && is_repeated => {
                    text.at += 1;
                    self.close()?;
                    expect = Expect::Rest;
                }
                None if expect != Expect::Item && !is_repeated => {
                    if let Some(done) = self.close()? {
                        return Ok(done);
                    }
                    expect = Expect::Rest;
                }
                None if expect != Expect::Item => {
                    let (at, opened) = (text.at, self.group().opened + 1);
                    return Err(Mistake::new(at, format!("the `(` of column {opened} is not closed")));
                }
                _ => {
                    return Err(text.unexpected(match (expect, is_repeated) {
                        (Expect::Rest, false) => "`,` or the end",
                        (Expect::Rest, true) => "`,` or `)`",
                        _ => "the name of a pass",
                    }));
                }
            }
        }
    }

    fn group(&mut self) -> &mut Group {
        self.groups.last_mut().expect("the group of the given text is on the stack until the end")
    }

    fn text(&mut self) -> &mut Scanner {
        &mut self.texts.last_mut().expect("the given text is on the stack until the end").1
    }

    /// Reads an item. If it opens a group, the loop reads the group.
    fn item(&mut self) -> Result<Expect, Mistake> {
        let at = self.text().at;
        let name = self.text().take_while(is_name_char);
        if name == FIXPOINT {
            return self.fixpoint(at);
        }
        let registry = self.registry;
        match registry.find(&name).map_err(|e| unknown(at, e))? {
            Named::Pass(i) => {
                let pass = &registry.passes()[i];
                let options = self.options(pass.name(), pass.options(), registry.settings_of(pass))?;
                let made = registry.make_with(pass, &options).map_err(|error| match error {
                    MakeError::Unknown(e) => unknown(at, e),
                    MakeError::Failed { .. } => Mistake::new(at, error.to_string()),
                })?;
                self.group().passes.push(made);
                Ok(Expect::Rest)
            }
            Named::Pipeline(i) => self.pipeline(&registry.pipelines()[i], at),
        }
    }

    /// Reads the options of a named pipeline, and turns to the text that it stands for.
    fn pipeline(&mut self, entry: &PipelineEntry, at: usize) -> Result<Expect, Mistake> {
        if let Some(from) = self.texts.iter().position(|t| t.0.as_ref() == Some(&entry.name)) {
            let mut names: Vec<&str> = self.texts[from..].iter().filter_map(|t| t.0.as_deref()).collect();
            names.push(&entry.name);
            return Err(Mistake::new(at, format!("pipelines name each other: {}", names.join(" -> "))));
        }
        let options = self.options(&entry.name, entry.options, std::iter::empty())?;
        let text = entry
            .text_with(&options)
            .map_err(|e| Mistake::new(at, format!("pipeline `{}` cannot be made: {e}", entry.name)))?;
        let text = (Some(entry.name.clone()), Scanner::new(&text));
        if self.is_whole() {
            self.texts = vec![text];
        } else {
            self.open(None, at)?;
            self.texts.push(text);
        }
        Ok(Expect::First)
    }

    /// Returns true if the item that was just read is the only one of the given text. If it is a
    /// named pipeline, the text stands for that pipeline, and not for a sequence that holds it.
    fn is_whole(&mut self) -> bool {
        self.text().skip_blanks();
        matches!(&*self.texts, [(None, given)] if given.peek().is_none())
            && matches!(&*self.groups, [group] if group.passes.is_empty())
    }

    fn fixpoint(&mut self, start: usize) -> Result<Expect, Mistake> {
        let text = self.text();
        text.expect('<', "`<` and a number of rounds")?;
        text.skip_blanks();
        let at = text.at;
        let digits = text.take_while(is_name_char);
        let Some(rounds) = digits.parse::<u32>().ok().filter(|&rounds| rounds > 0) else {
            return Err(Mistake::new(at, format!("a number of rounds is a whole number from 1, not `{digits}`")));
        };
        text.expect('>', "`>`")?;
        let opened = text.at;
        text.expect('(', "`(`")?;
        self.open(Some(rounds), opened.max(start))?;
        Ok(Expect::First)
    }

    fn open(&mut self, rounds: Option<u32>, opened: usize) -> Result<(), Mistake> {
        // The group of the given text is one of them.
        if self.groups.len() == MAX_NESTING {
            return Err(Mistake::new(opened, format!("pipelines nest at most {MAX_NESTING} deep")));
        }
        self.groups.push(Group { rounds, passes: Vec::new(), opened });
        Ok(())
    }

    /// Closes the innermost group. Returns the whole sequence if the group is that of the given
    /// text.
    fn close(&mut self) -> Result<Option<Sequential>, Mistake> {
        let Group { rounds, passes, opened } = self.groups.pop().expect("it was just looked at");
        let nested = |e: NestingError| Mistake::new(opened, e.to_string());
        let made: Arc<dyn Pass> = match rounds {
            Some(rounds) => Arc::new(Repeat::new(passes, rounds).map_err(nested)?),
            None => {
                let name = self.texts.last().and_then(|t| t.0.as_deref()).unwrap_or("pipeline");
                let made = Sequential::named(PassInfo::new(name, 0), passes).map_err(nested)?;
                if self.groups.is_empty() {
                    return Ok(Some(made));
                }
                self.texts.pop();
                Arc::new(made)
            }
        };
        self.group().passes.push(made);
        Ok(None)
    }

    /// Reads `{key=value,…}`, if it is present: the options of a pass or pipeline, and settings by
    /// the names that they have here.
    fn options<'s>(
        &mut self,
        name: &str,
        defs: &'static [OptionDef],
        settings: impl Iterator<Item = (&'static str, &'s ConfigDef)> + Clone,
    ) -> Result<Options, Mistake> {
        let mut options = Options::new(name, defs);
        let text = self.text();
        if !text.take('{') {
            return Ok(options);
        }
        let mut given: Vec<String> = Vec::new();
        let mut is_first = true;
        while !text.take('}') {
            if !std::mem::take(&mut is_first) {
                text.expect(',', "`,` or `}`")?;
            }
            text.skip_blanks();
            let key_at = text.at;
            let is_quoted = text.peek() == Some('"');
            let key = if is_quoted { text.value()? } else { text.take_while(is_name_char) };
            if key.is_empty() && !is_quoted {
                return Err(text.unexpected("the name of an option"));
            }
            if !is_quoted && given.contains(&key) {
                return Err(Mistake::new(key_at, format!("`{key}` is given more than once")));
            }
            text.expect('=', "`=`")?;
            text.skip_blanks();
            let value_at = text.at;
            let setting = settings.clone().find(|(short, _)| *short == key && !is_quoted).map(|(_, def)| def);
            let option = defs.iter().find(|o| o.key == key).or(setting);
            let kind = option.map(|o| &o.kind);
            let value = match text.peek() {
                Some('[') => list_text(text.list()?.iter().map(|item| quoted(item))),
                _ => text.value()?,
            };
            // A list for an option of another kind is reported as an error of its kind. A text that
            // looks like a list needs quotes.
            let takes_list = matches!(kind, None | Some(ConfigKind::IntList { .. } | ConfigKind::TextList { .. }));
            if let (false, Some(kind), Some('[')) = (takes_list, kind, text.chars.get(value_at)) {
                return Err(Mistake::new(value_at, format!("`{key}` takes {kind}, not `{value}`")));
            }
            let set = match setting {
                Some(def) => def.parse(&value).map(|value| options.settings.push((def.key, value))),
                None if is_quoted => options.set_number(&key, &value),
                None => options.set_text(&key, &value),
            };
            set.map_err(|e| match e {
                ConfigError::Twice(_) => Mistake::new(key_at, e.to_string()),
                ConfigError::Unknown(e) if e.name == key && kind.is_none() => {
                    let known = defs.iter().map(|o| o.key).chain(settings.clone().map(|(short, _)| short));
                    unknown(key_at, UnknownName::new(e.what, &key, known))
                }
                ConfigError::Unknown(e) => unknown(value_at, e),
                other => Mistake::new(value_at, other.to_string()),
            })?;
            // A name in quotes is that of a number, even if an option has this name.
            if !is_quoted {
                given.push(key);
            }
        }
        Ok(options)
    }
}

fn unknown(at: usize, error: UnknownName) -> Mistake {
    Mistake { suggestion: error.suggestion.clone(), ..Mistake::new(at, error.to_string()) }
}
