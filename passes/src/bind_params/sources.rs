//! The sources of the literals of BindParams: the text of its option, and files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anfora_ir::{Function, Literal, OpRegistry, Source, parse_module};
use anfora_manager::PassError;

use crate::npy::{NpyError, NpyFile};

/// An entry of the option `params`.
pub(super) enum ParamSource {
    /// A parameter and its literal.
    Literal(String, Literal),
    /// A parameter and the file with its literal. In an archive, the array has the given name, or
    /// the parameter's name if none is given.
    File(String, PathBuf, Option<String>),
    /// An archive whose arrays are named like parameters.
    Archive(PathBuf),
}

// ---- The text ----

/// Parses `%name=LITERAL, %name=FILE, ARCHIVE, …`. Reads no files.
pub(super) fn parse(text: &str) -> Result<Vec<ParamSource>, PassError> {
    let form = || PassError::new(format!("`{text}` is not of the form `%name=LITERAL, …`"));
    let mut sources = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let end = part_end(rest);
        let part = rest[..end].trim();
        sources.push(match part.strip_prefix('%') {
            Some(named) => {
                let (name, value) = param_name(named).ok_or_else(form)?;
                let value = value.trim_start().strip_prefix('=').ok_or_else(form)?.trim();
                match file_of(value) {
                    Some((path, array)) => ParamSource::File(name, path, array),
                    None => ParamSource::Literal(name, parse_literal(value)?),
                }
            }
            None => match file_of(part) {
                Some((path, None)) => ParamSource::Archive(path),
                _ => return Err(form()),
            },
        });
        // After a comma there is another entry, unless the comma is the last character.
        rest = rest[end..].strip_prefix(',').unwrap_or_default().trim_start();
    }
    Ok(sources)
}

/// Returns the end of the first entry: the position of a comma outside of strings and brackets, or
/// the end of the text.
fn part_end(text: &str) -> usize {
    let mut depth = 0usize;
    let mut at = 0;
    while let Some(found) = text[at..].find(['"', ',', '(', '[', '{', '<', ')', ']', '}', '>']) {
        at += found;
        match text.as_bytes()[at] {
            b',' if depth == 0 => return at,
            b'"' => match string_end(&text[at..]) {
                Some(end) => {
                    at += end;
                    continue;
                }
                None => break,
            },
            b'(' | b'[' | b'{' | b'<' => depth += 1,
            b',' => {}
            _ => depth = depth.saturating_sub(1),
        }
        at += 1;
    }
    text.len()
}

/// Splits the text after a `%` into a name and the rest.
fn param_name(text: &str) -> Option<(String, &str)> {
    if text.starts_with('"') {
        let end = string_end(text)?;
        return Some((parse_string(&text[..end])?, &text[end..]));
    }
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '$')?;
    (end > 0).then(|| (text[..end].to_string(), &text[end..]))
}

/// Parses `path.npy`, `path.npz[array]`, `file("path")` or `file("path")["array"]`. No literal has
/// such a form.
fn file_of(text: &str) -> Option<(PathBuf, Option<String>)> {
    let (path, rest) = match text.strip_prefix("file") {
        Some(rest) if rest.trim_start().starts_with('(') => {
            let inner = rest.trim_start()[1..].trim_start();
            let end = inner.starts_with('"').then(|| string_end(inner)).flatten()?;
            let path = parse_string(&inner[..end])?;
            (path, inner[end..].trim_start().strip_prefix(')')?)
        }
        _ => {
            let end = text.find('[').unwrap_or(text.len());
            let (path, rest) = text.split_at(end);
            let path = path.trim_end();
            let is_word = path.chars().all(|c| c.is_alphanumeric() || "_./-+~@:".contains(c));
            if !is_word || !(path.ends_with(".npy") || path.ends_with(".npz")) {
                return None;
            }
            (path.to_string(), rest)
        }
    };
    let rest = rest.trim();
    if rest.is_empty() {
        return Some((path.into(), None));
    }
    let array = rest.strip_prefix('[')?.strip_suffix(']')?.trim();
    let array = if array.starts_with('"') { parse_string(array)? } else { array.to_string() };
    (!array.is_empty()).then(|| (path.into(), Some(array)))
}

/// Returns the end of the string at the start of a text, including its quotes.
fn string_end(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (i, c) in text.char_indices().skip(1) {
        match c {
            '"' if !escaped => return Some(i + 1),
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    None
}

/// Parses a literal of the text format.
fn parse_literal(text: &str) -> Result<Literal, PassError> {
    let error = || PassError::new(format!("`{text}` is not a literal"));
    if text.ends_with(".npy") || text.ends_with(".npz") {
        return Err(error().with_help(format!("a file of such a name is written file(\"{text}\")")));
    }
    let program = format!("def @literal() {{ {text} }}");
    let module =
        parse_module(Source::new("params", program), Arc::new(OpRegistry::new())).map_err(|all| match all.first() {
            Some(first) => PassError::new(format!("`{text}` is not a literal: {}", first.message)),
            None => error(),
        })?;
    let functions: Vec<&Function> = module.functions().map(|(_, f)| f).collect();
    match functions[..] {
        [function] => {
            let body = &function.body;
            let id = body.as_literal(body.root()).ok_or_else(error)?;
            Ok(module.cx.literals.get(id).clone())
        }
        _ => Err(error()),
    }
}

fn parse_string(text: &str) -> Option<String> {
    let literal = parse_literal(text).ok()?;
    let strings = literal.as_strings()?;
    strings.first().map(|s| s.to_string())
}

// ---- The files ----

/// Reads the files, and returns the names of parameters with their literals.
pub(super) fn read(sources: &[ParamSource]) -> Result<Vec<(String, Literal)>, PassError> {
    let mut literals = Vec::new();
    for source in sources {
        let unreadable =
            |path: &Path, e: NpyError| PassError::new(format!("cannot read `{}`", path.display())).with_cause(e);
        match source {
            ParamSource::Literal(name, literal) => literals.push((name.clone(), literal.clone())),
            ParamSource::Archive(path) => {
                let arrays = NpyFile::open(path).and_then(|file| read_archive(file, None));
                literals.extend(arrays.map_err(|e| unreadable(path, e))?);
            }
            ParamSource::File(name, path, array) => {
                let literal = read_array(path, name, array.as_deref()).map_err(|e| unreadable(path, e))?;
                literals.push((name.clone(), literal));
            }
        }
    }
    Ok(literals)
}

fn read_array(path: &Path, param: &str, array: Option<&str>) -> Result<Literal, NpyError> {
    let file = NpyFile::open(path)?;
    if !file.is_archive() {
        return match array {
            Some(_) => Err(NpyError::Contents("it is no archive, so it has no arrays by name".to_string())),
            None => file.read_tensor(),
        };
    }
    let array = array.unwrap_or(param);
    let found = read_archive(file, Some(array))?.into_iter().next();
    found.map(|(_, literal)| literal).ok_or_else(|| NpyError::Contents(format!("it has no array `{array}`")))
}

/// Returns all arrays of an archive, or only the array with the given name.
#[cfg(feature = "npz")]
fn read_archive(file: NpyFile, array: Option<&str>) -> Result<Vec<(String, Literal)>, NpyError> {
    file.read_archive(|name| array.is_none_or(|array| array == name))
}

#[cfg(not(feature = "npz"))]
fn read_archive(_: NpyFile, _: Option<&str>) -> Result<Vec<(String, Literal)>, NpyError> {
    Err(NpyError::Contents("reading archives takes the feature `npz` of anfora-passes".to_string()))
}
