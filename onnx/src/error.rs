//! The errors of import and export, with the places where they occur.

use std::borrow::Cow;

use anfora_ir::{DType, Diagnostic, StorageError, TypeError};

use crate::tensor::TensorError;
use crate::wire::WireError;

/// The reason why a file cannot be imported, and the place in the file.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct ImportError {
    /// The graph, and the node or the value.
    pub place: String,
    /// The problem at that place.
    pub problem: ImportProblem,
}

/// A problem in a file.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum ImportProblem {
    /// The bytes are not a model.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The bytes are not a model. The fault appears only when they are decoded, such as text that
    /// is not UTF-8.
    #[error("the file is damaged: {0}")]
    Decode(#[from] prost::DecodeError),
    /// There are no bytes.
    #[error("it is empty")]
    Empty,
    /// Constants cannot be read from their file.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The file has 2^32 bytes or more, too many to number its parts. Protocol buffers allow at
    /// most 2 GiB.
    #[error("it has {0} bytes; a model has less than 2^32, and its weights may be in files of their own")]
    TooLarge(usize),
    /// Something that every model has is missing.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// The file's version of the format is newer than the versions that this crate knows, and
    /// unknown fields are to be dropped.
    #[error(
        "IR version {0} is newer than the newest that is known, {newest}, and may have fields whose loss changes what it means",
        newest = crate::proto::IR_VERSION
    )]
    IrVersion(i64),
    /// A function contains a node that is kept unchanged, and the function imports another version
    /// of the node's domain than the model.
    #[error("`{0}` is kept unchanged, but the model imports another version of it")]
    DifferentOpset(String),
    /// A function of the model calls itself, maybe through other functions.
    #[error("the function `{0}` calls itself, maybe through others, which a function of a model cannot")]
    Recursion(String),
    /// Nodes of functions refer to attributes so often that the substituted values would take many
    /// times the bytes of the file.
    #[error(
        "its nodes refer so often to attributes of functions that these would take many times the bytes of the file"
    )]
    References,
    /// Something that is not supported and that the model cannot simply preserve.
    #[error("{0} is not supported yet")]
    Unsupported(&'static str),
    /// A constant is malformed.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// A constant whose elements are in another file cannot be read.
    #[error("{tensor}: {problem}")]
    External {
        /// The tensor: "the tensor `name`".
        tensor: String,
        /// The problem with its elements.
        problem: ExternalError,
    },
    /// A value that must have a name has none.
    #[error("{0} without a name")]
    Nameless(&'static str),
    /// A value is defined twice in the same graph.
    #[error("`{0}` is defined twice")]
    Duplicate(String),
    /// A node has two attributes of the same name.
    #[error("the attribute `{0}` is given twice")]
    DuplicateAttribute(String),
    /// A value has no definition.
    #[error("`{0}` is neither an input, nor an initializer, nor the output of a node")]
    Undefined(String),
    /// A value is used before it is computed.
    #[error(
        "`{0}` is used before the node that computes it: nodes are to be in topological order, and there is none if they \
         form a cycle"
    )]
    Order(String),
    /// Operands or attributes do not fit the operator.
    #[error("{0}")]
    Type(TypeError),
    /// The module already has a function of the name, or another problem that a valid file cannot
    /// cause.
    #[error("{0}")]
    Other(String),
}

/// The reason why the elements of a tensor cannot be read from another file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ExternalError {
    /// The import options name no source of files.
    #[error("its elements are in another file, `{0}`, but the import has no source of other files")]
    NoFiles(String),
    /// The tensor does not state the file.
    #[error("its elements are in another file, and it does not say in which")]
    NoLocation,
    /// A location that is not inside the model's folder.
    #[error("its elements are in the file `{0}`, which is not a path inside the model's folder")]
    Outside(String),
    /// `offset` or `length` is not a number of bytes.
    #[error("`{key}` of its elements in another file is `{value}`, which is not a number of bytes")]
    Number {
        /// The key: `offset` or `length`.
        key: &'static str,
        /// The value of the key.
        value: String,
    },
    /// The file cannot be read.
    #[error("its elements are in the file `{location}`, which cannot be read: {message}")]
    Unreadable {
        /// The file.
        location: String,
        /// The message of the system.
        message: String,
    },
    /// The file is shorter than the offset and the length require.
    #[error("its elements are {length} bytes from byte {offset} of the file `{location}`, which has {size}")]
    Short {
        /// The file.
        location: String,
        /// The offset of the first element in bytes.
        offset: u64,
        /// The number of bytes of the elements.
        length: u64,
        /// The size of the file in bytes.
        size: u64,
    },
    /// The ranges of tensors overlap too much.
    #[error(
        "its elements are in the file `{location}`, of whose {size} bytes the tensors of the model take more than {most}: too many overlap"
    )]
    Overlap {
        /// The file.
        location: String,
        /// The size of the file in bytes.
        size: u64,
        /// The most bytes that the ranges may have together.
        most: u64,
    },
    /// The stated length is not the size of the elements.
    #[error("its elements are {length} bytes of the file `{location}`, but its type and shape take {expected}")]
    Length {
        /// The file.
        location: String,
        /// The stated length in bytes.
        length: u64,
        /// The size in bytes by type and shape.
        expected: u64,
    },
    /// Neither the tensor's type and shape nor its `length` state the number of bytes.
    #[error("its elements are in the file `{0}`, and nothing says how many bytes they take")]
    NoLength(String),
    /// The tensor has elements in the model as well.
    #[error("its elements are in the file `{0}`, and it has elements in the model as well")]
    Twice(String),
    /// Strings can only be stored in the model.
    #[error("its elements are strings, which cannot be in another file")]
    Strings,
}

impl ImportError {
    pub(crate) fn new(place: impl Into<String>, problem: impl Into<ImportProblem>) -> ImportError {
        ImportError { place: place.into(), problem: problem.into() }
    }

    /// Returns a diagnostic about the file as a whole.
    pub fn diagnostic(&self) -> Diagnostic {
        let diagnostic = Diagnostic::error(self.to_string());
        match &self.problem {
            ImportProblem::Type(TypeError { help: Some(help), .. }) => diagnostic.with_help(help.clone()),
            _ => diagnostic,
        }
    }
}

/// The reason why a node cannot be expressed in our operators: a phrase such as "`mode` is
/// `cubic`".
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct UnsupportedReason {
    reason: Cow<'static, str>,
    is_misfit: bool,
}

impl UnsupportedReason {
    /// Returns the reason with a phrase that names the obstacle in the node.
    ///
    /// Cost: one node.
    pub fn because(reason: impl Into<Cow<'static, str>>) -> UnsupportedReason {
        UnsupportedReason { reason: reason.into(), is_misfit: false }
    }

    /// Returns the reason for a node that does not fit its operands: no version of its operator
    /// takes operands of these types with these attributes. An import warns of such a node. The
    /// phrase says what does not fit.
    ///
    /// Cost: one node.
    pub fn misfit(reason: impl Into<Cow<'static, str>>) -> UnsupportedReason {
        UnsupportedReason { reason: reason.into(), is_misfit: true }
    }

    /// Returns true if the node does not fit its operands; see [`UnsupportedReason::misfit`].
    pub fn is_misfit(&self) -> bool {
        self.is_misfit
    }

    /// Returns the phrase.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// A short form of [`UnsupportedReason::because`].
pub(crate) fn because(reason: impl Into<Cow<'static, str>>) -> UnsupportedReason {
    UnsupportedReason::because(reason)
}

/// The reason why a module cannot be written, and the place in the module.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub struct ExportError {
    /// The function, without `@`.
    pub function: String,
    /// The name of the binding, without `%`, if the place is a binding with a name.
    pub binding: Option<String>,
    /// The problem at that place.
    pub problem: ExportProblem,
}

impl std::fmt::Display for ExportError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.binding {
            Some(binding) => write!(f, "in @{}, at %{binding}: {}", self.function, self.problem),
            None => write!(f, "in @{}: {}", self.function, self.problem),
        }
    }
}

/// A part of a module that ONNX cannot express.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum ExportProblem {
    /// Constants cannot be read from their file.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// There is no function with a body under the name of the entry.
    #[error("there is no function `@{0}` with a body")]
    NoEntry(String),
    /// A construct that a pass removes.
    #[error("ONNX has no {what}; the pass `{pass}` removes it")]
    Pass {
        /// The construct.
        what: &'static str,
        /// The pass that removes it.
        pass: &'static str,
    },
    /// A construct that ONNX does not have, or that this crate does not write.
    #[error("{0} cannot be written")]
    Unsupported(String),
    /// A call of a function that is only declared.
    #[error("`@{0}` is called and has no body; a function of a model has one")]
    NoBody(String),
    /// A call of a function that calls itself, maybe through other functions.
    #[error("`@{0}` calls itself, maybe through others, which a function of a model cannot")]
    Recursion(String),
    /// An operator without a counterpart.
    #[error("the operator `{0}` has no counterpart")]
    Operator(String),
    /// The counterpart came with a later version of the operators.
    #[error("`{operator}` needs version {needed} of the operators{}; the model is of version {present}", of_domain(.domain))]
    Opset {
        /// The operator, under its name in the module.
        operator: String,
        /// The domain of the counterpart; empty for the standard one.
        domain: String,
        /// The version that the counterpart needs.
        needed: i64,
        /// The version of the model.
        present: i64,
    },
    /// A node that the import kept as it is would be written in another version of the operators.
    #[error(
        "`{operator}` is kept as version {stated} of the operators defines it, and is not written in version {wanted}"
    )]
    OtherVersion {
        /// The operator.
        operator: String,
        /// The version of the file.
        stated: i64,
        /// The version that is asked for.
        wanted: i64,
    },
    /// A row that writes steps that do not fit.
    #[error("a call cannot be written in other operators: {0}")]
    Decomposition(String),
    /// No version of the counterpart takes the element type.
    #[error("no version of ONNX's `{onnx}` has elements of {dtype}")]
    ElementType {
        /// The counterpart.
        onnx: String,
        /// The element type.
        dtype: DType,
    },
    /// A float attribute of a call on elements of float64 that would be rounded.
    #[error(
        "`{name}` of `{operator}` is {value:?}, and the format would round it to float32; on elements of float64 it is to be \
         one that float32 holds, such as {held:?}"
    )]
    Rounded {
        /// The operator, under its name in the module.
        operator: String,
        /// The attribute of the counterpart.
        name: &'static str,
        /// The value of the attribute.
        value: f64,
        /// The nearest value that the format can hold.
        held: f64,
    },
    /// The preserved training information refers to an initializer that a pass has removed.
    #[error(
        "the training information is about `{0}`, which is not there any more; without the module's attribute `onnx_training` the model can be written"
    )]
    Training(String),
    /// A function that is the subgraph of several nodes and too large to be written for each of
    /// them.
    #[error(
        "`{0}` is the subgraph of several nodes, and with the subgraphs in it, written for each, it makes the file many times as \
         large as the module; let it call a function of the module, which is written once"
    )]
    Repeated(String),
    /// A type that ONNX does not have.
    #[error("the type {0} cannot be written")]
    Type(String),
    /// A constant cannot be written.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// The file would be larger than protocol buffers allow.
    #[error(
        "the file would be larger than 2 GiB, the most that the format can hold; constants may go to a file beside it"
    )]
    TooLarge,
    /// Subgraphs are nested deeper than readers accept.
    #[error("branches and other subgraphs are nested more than {0} deep, which readers of the format refuse")]
    TooDeep(usize),
    /// An attribute that should hold an encoded message holds something else.
    #[error("the attribute `{0}` is not what the importer writes")]
    Damaged(&'static str),
}

impl ExportError {
    /// Returns a diagnostic that names the function and the binding.
    pub fn diagnostic(&self) -> Diagnostic {
        let diagnostic = Diagnostic::error(self.problem.to_string()).in_function(self.function.clone());
        let diagnostic = match &self.binding {
            Some(binding) => diagnostic.on_binding(binding.clone()),
            None => diagnostic,
        };
        match &self.problem {
            ExportProblem::Pass { pass, .. } => diagnostic.with_help(format!("run the pass `{pass}` first")),
            ExportProblem::TooLarge => diagnostic.with_help(
                "`ExportOptions::external_data`, on the command line `--external-data`, writes constants to a file beside it",
            ),
            ExportProblem::Tensor(TensorError::TooLarge(_)) => diagnostic.with_help(
                "a constant that is one number many times is written as a node that repeats it from version 9 of the operators on, \
                 for the element types of which there is arithmetic, but for bfloat16; fold less (`FoldConstant.max_growth_bytes`) to \
                 keep the operators that compute it",
            ),
            ExportProblem::Opset { needed, .. } => diagnostic.with_help(format!(
                "ask for version {needed}: `ExportOptions::opset`, or `onnx_opsets` of the module, which says what its file asked for; \
                 `onnx.version_converter` converts the file"
            )),
            ExportProblem::OtherVersion { stated, .. } => diagnostic.with_help(format!(
                "ask for version {stated}; `onnx.version_converter` converts the file"
            )),
            ExportProblem::Operator(operator) if operator == "match_cast" => diagnostic
                .with_help(
                    "the pass `CanonicalizeBindings` removes those of which the types say that they hold; \
                     `proved=true` says that a cast always holds",
                ),
            ExportProblem::TooDeep(_) => diagnostic.with_help(
                "no pass takes branches apart: move inner ones into functions (`def`), whose nesting counts on its own, or \
                 run `FoldConstant` if conditions are constants",
            ),
            _ => diagnostic,
        }
    }
}

fn of_domain(domain: &str) -> String {
    if domain.is_empty() { String::new() } else { format!(" of `{domain}`") }
}
