//! `anfora surgery`

use anfora::ir::{Diagnostics, Module};
use anfora::surgery::{self, AttributeEdit, NewAttribute, NewExtent, Part, Renames};
use clap::{Args, Subcommand};

use crate::command_line::CommandLine;
use crate::file::InputAndOutput;
use crate::report::Failure;

/// Edits a model by the names of its values: cuts out a part, renames, changes the shapes of
/// inputs, changes attributes.
///
/// Names are those in the text or in the ONNX file. The result is typed and verified before it is
/// written.
#[derive(Args)]
pub(crate) struct Surgery {
    #[command(subcommand)]
    edit: Edit,
}

#[derive(Subcommand)]
enum Edit {
    /// Keeps only what computes some values from others
    Extract(Extract),
    /// Renames values, functions and symbolic dimensions
    Rename(Rename),
    /// Gives inputs other extents: numbers or symbolic dimensions
    SetShape(SetShape),
    /// Sets attributes of nodes
    SetAttribute(SetAttribute),
}

/// The model, and the place of the result.
#[derive(Args)]
struct EditedFile {
    #[command(flatten)]
    files: InputAndOutput,
    /// The function that is edited
    #[arg(long, default_value = "@main")]
    entry: String,
}

/// Keeps only what computes some values from others.
#[derive(Args)]
struct Extract {
    #[command(flatten)]
    file: EditedFile,
    /// The inputs of the part, in order: inputs of the model, or values that it computes. Without
    /// it, the inputs of the model that the outputs need
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    inputs: Option<Vec<String>>,
    /// The outputs of the part, in order: any values. Without it, the outputs of the model
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    outputs: Option<Vec<String>>,
}

/// Renames values, functions and symbolic dimensions.
#[derive(Args)]
struct Rename {
    #[command(flatten)]
    file: EditedFile,
    /// An input, an output, or another value
    #[arg(long = "value", value_name = "OLD=NEW")]
    values: Vec<String>,
    /// A function
    #[arg(long = "function", value_name = "OLD=NEW")]
    functions: Vec<String>,
    /// A symbolic dimension, in all functions
    #[arg(long = "dim", value_name = "OLD=NEW")]
    dims: Vec<String>,
}

/// Gives inputs other extents: numbers or symbolic dimensions. Types are inferred again.
#[derive(Args)]
struct SetShape {
    #[command(flatten)]
    file: EditedFile,
    /// The extents of an input, such as `x=batch,3,224,224`; `?` leaves an extent as it is
    #[arg(long = "input", value_name = "NAME=EXTENTS", required = true)]
    inputs: Vec<String>,
}

/// Sets attributes of nodes. Types are inferred again.
#[derive(Args)]
struct SetAttribute {
    #[command(flatten)]
    file: EditedFile,
    /// An attribute of a node, by the name of the node or of its value, such as `scores.axis=-1`.
    /// Attributes and values are those of the text format: the commands `ops` and `convert` show
    /// them
    #[arg(long = "set", value_name = "NODE.ATTRIBUTE=VALUE", required = true)]
    attributes: Vec<String>,
}

impl Surgery {
    pub(crate) fn run(self, cli: &CommandLine) -> Result<(), Failure> {
        match self.edit {
            Edit::Extract(Extract { file, inputs, outputs }) => {
                let part = Part { inputs, outputs };
                file.edit(cli, |module, entry| surgery::extract(module, entry, &part))
            }
            Edit::Rename(Rename { file, values, functions, dims }) => {
                let pairs =
                    |flag, given: &[String]| given.iter().map(|text| pair(flag, text)).collect::<Result<Vec<_>, _>>();
                let names = Renames {
                    values: pairs("--value", &values)?,
                    functions: pairs("--function", &functions)?,
                    symbols: pairs("--dim", &dims)?,
                };
                file.edit(cli, |module, entry| surgery::rename(module, entry, &names))
            }
            Edit::SetShape(SetShape { file, inputs }) => {
                let shapes: Vec<_> = inputs.iter().map(|text| shape("--input", text)).collect::<Result<_, _>>()?;
                file.edit(cli, |module, entry| surgery::set_shapes(module, entry, &shapes))
            }
            Edit::SetAttribute(SetAttribute { file, attributes }) => {
                let edits: Vec<_> = attributes.iter().map(|text| attribute(text)).collect::<Result<_, _>>()?;
                file.edit(cli, |module, entry| surgery::set_attributes(module, entry, &edits))
            }
        }
    }
}

impl EditedFile {
    /// Reads the model, edits it, and writes the result.
    fn edit(
        self,
        cli: &CommandLine,
        edit: impl FnOnce(&mut Module, &str) -> Result<(), Diagnostics>,
    ) -> Result<(), Failure> {
        let mut module = self.files.load(cli)?;
        anfora::ir::verify_module(&module).map_err(|errors| Failure::in_module(&errors, &module))?;
        edit(&mut module, self.entry.trim_start_matches('@')).map_err(|e| Failure::in_module(&e, &module))?;
        self.files.store(cli, &module)
    }
}

/// Parses an old and a new name.
fn pair(flag: &str, text: &str) -> Result<(String, String), Failure> {
    match text.split_once('=') {
        Some((old, new)) if !old.is_empty() && !new.is_empty() => Ok((old.to_string(), new.to_string())),
        _ => Err(Failure::Usage(format!("{flag} {text}: write it as OLD=NEW"))),
    }
}

/// Parses the extents of an input.
pub(crate) fn shape(flag: &str, text: &str) -> Result<(String, Vec<NewExtent>), Failure> {
    let wrong =
        || Failure::Usage(format!("{flag} {text}: write it as NAME=EXTENTS, such as `x=1,3,224,224` or `x=?,128`"));
    // A name may have colons of its own, as those that TensorFlow gives inputs do. Other tools
    // write `NAME:EXTENTS`.
    let parts = text.rsplit_once('=').or_else(|| text.rsplit_once(':'));
    let (name, extents) = parts.filter(|(name, _)| !name.is_empty()).ok_or_else(wrong)?;
    let extent = |part: &str| match part.trim() {
        "?" => Ok(NewExtent::Kept),
        word if word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') => {
            Ok(NewExtent::Named(word.to_string()))
        }
        number => number.parse().map(NewExtent::Fixed).map_err(|_| wrong()),
    };
    let extents = match extents.trim() {
        "" => Vec::new(),
        extents => extents.split(',').map(extent).collect::<Result<_, _>>()?,
    };
    Ok((name.to_string(), extents))
}

/// Parses an attribute with its node. The name of a node may contain dots.
fn attribute(text: &str) -> Result<AttributeEdit, Failure> {
    let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let found = text.match_indices('=').find_map(|(at, _)| {
        let (node, name) = text[..at].rsplit_once('.')?;
        (is_word(name.trim()) && !node.is_empty()).then(|| (node, name.trim(), text[at + 1..].trim()))
    });
    match found {
        Some((node, name, value)) if !value.is_empty() => Ok(AttributeEdit {
            node: node.to_string(),
            attribute: name.to_string(),
            value: NewAttribute::Text(value.to_string()),
        }),
        _ => Err(Failure::Usage(format!("--set {text}: write it as NODE.ATTRIBUTE=VALUE, such as `scores.axis=-1`"))),
    }
}
