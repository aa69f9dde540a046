//! Constants. Equal constants share an initializer; a constant that repeats a single number may
//! become a node.

use std::rc::Rc;

use anfora_ir::{DType, Literal, LiteralId, NameId, VarId};
use rustc_hash::FxHashMap;

use super::data::{DataFile, KeptData, written_bytes};
use super::names::{Name, Names};
use super::options::{ExportOptions, GraphKind, Versions};
use crate::attributes::tensor_attribute;
use crate::convert::FILL_SINCE;
use crate::error::ExportProblem;
use crate::id_hash::IdMap;
use crate::proto::{NodeProto, StringStringEntryProto, TensorProto, node};
use crate::tensor::{SMALL_CONSTANT, TensorError, external_tensor_of, tensor_of, without_elements};

/// The largest file that protocol buffers can hold, in bytes.
pub(super) const MAX_FILE: u64 = i32::MAX as u64;
/// Splats take at most this many bytes in total, whatever the options say, including splats in the
/// data file. The limit applies to splats that a node could make.
const MOST_SPLAT_BYTES: u64 = MAX_FILE;
/// Initializers of at least this many bytes are copied from a file when the model is written, or
/// written from memory, where a splat has one element.
const COPIED: u64 = 4 << 10;
/// Constants of at most this many elements are also looked up by contents.
const SMALL: usize = 64;
/// A splat of at most this many bytes is always written out, since a node would take more.
const TINY_SPLAT: u64 = 64;

/// The constants written so far.
pub(super) struct Constants<'m> {
    /// The open graphs, the outermost first.
    levels: Vec<Level<'m>>,
    /// The names of constants that are bound under their own name in the open graphs, by contents
    /// and that name.
    bound: FxHashMap<(LiteralId, NameId), Vec<Name<'m>>>,
    /// The constants that are bound under each name in the open graphs.
    bound_as: IdMap<NameId, Vec<LiteralId>>,
    /// The names of the same constants, by variable.
    of_var: IdMap<VarId, Name<'m>>,
    /// The bytes that the splats written so far take beyond one element each.
    splat_bytes: u64,
    max_splat_bytes: u64,
    max_total_splat_bytes: u64,
    /// True if the version of the operators has `ConstantOfShape`.
    has_constant_of_shape: bool,
    /// True if only the outermost graph may have constants.
    is_flat: bool,
    /// True if the outermost graph is that of a function, which has no initializers.
    in_function: bool,
    /// The file for large constants.
    data: Option<DataFile>,
    /// The files that constants stay in.
    kept: Option<KeptData>,
    /// The initializers of the model whose elements are written from where they are, a file or
    /// memory. Their tensors have none.
    copied: FxHashMap<String, Literal>,
}

/// The constants of an unfinished graph.
#[derive(Default)]
struct Level<'m> {
    by_id: IdMap<LiteralId, Name<'m>>,
    by_contents: FxHashMap<Literal, Name<'m>>,
    begin: Begin,
}

/// The initializers, nodes and constants at the beginning of a graph.
#[derive(Default)]
pub(super) struct Begin {
    pub(super) initializers: Vec<TensorProto>,
    pub(super) nodes: Vec<NodeProto>,
    pub(super) constants: Vec<FunctionConstant>,
}

/// A constant that every call of a function passes to it.
pub(super) struct FunctionConstant {
    /// The name of the constant in the function.
    pub(super) name: Rc<str>,
    pub(super) literal: Literal,
    /// The id of the literal, if it is in the module.
    pub(super) id: Option<LiteralId>,
}

impl<'m> Constants<'m> {
    pub(super) fn new(
        options: &ExportOptions,
        versions: &Versions,
        kind: GraphKind,
    ) -> Result<Constants<'m>, ExportProblem> {
        let in_function = kind != GraphKind::Main;
        // The constants of a function are passed by its calls and are written with these.
        let external = options.external_data.as_ref().filter(|_| !in_function);
        Ok(Constants {
            levels: Vec::new(),
            bound: FxHashMap::default(),
            bound_as: IdMap::default(),
            of_var: IdMap::default(),
            splat_bytes: 0,
            max_splat_bytes: options.max_splat_bytes,
            max_total_splat_bytes: match options.max_splat_bytes {
                u64::MAX => u64::MAX,
                _ => options.max_total_splat_bytes,
            },
            has_constant_of_shape: versions.opset("") >= FILL_SINCE,
            is_flat: versions.initializers_are_inputs,
            in_function,
            data: external.map(DataFile::new).transpose()?,
            kept: options.keep_data_beside.as_deref().filter(|_| !in_function).and_then(KeptData::beside),
            copied: FxHashMap::default(),
        })
    }

    /// Takes the file for large constants; `None` if it is empty.
    pub(super) fn take_data(&mut self) -> Option<DataFile> {
        self.data.take().filter(|d| !d.is_empty())
    }

    /// Takes the initializers whose elements are written from where they are.
    pub(super) fn take_copied(&mut self) -> FxHashMap<String, Literal> {
        std::mem::take(&mut self.copied)
    }

    /// Returns the message of a constant. Its elements may be moved to the file for large
    /// constants.
    pub(super) fn tensor(&mut self, literal: &Literal) -> Result<TensorProto, ExportProblem> {
        match self.place(literal)? {
            Some(place) => Ok(external_tensor_of(literal, place)?),
            None if !literal.is_dense() && literal.expanded_bytes().is_some_and(|b| b as u64 > MAX_FILE) => {
                Err(ExportProblem::TooLarge)
            }
            None => Ok(tensor_of(literal, MAX_FILE)?),
        }
    }

    /// Returns the entries of the tensor of a constant that is in another file. If it is not, it
    /// may be moved to the file for large constants.
    fn place(&mut self, literal: &Literal) -> Result<Option<Vec<StringStringEntryProto>>, ExportProblem> {
        match self.kept.as_mut().and_then(|kept| kept.place(literal)) {
            None => Ok(self.data.as_mut().map(|d| d.take(literal)).transpose()?.flatten()),
            kept => Ok(kept),
        }
    }

    /// Returns the message of an initializer whose elements are written from where they are. It has
    /// none if they are not moved.
    fn copied_tensor(&mut self, literal: &Literal) -> Result<TensorProto, ExportProblem> {
        Ok(match self.place(literal)? {
            Some(place) => external_tensor_of(literal, place)?,
            None => without_elements(literal)?,
        })
    }

    /// Begins a graph inside the current one.
    pub(super) fn open(&mut self) {
        self.levels.push(Level::default());
    }

    /// Ends the current graph. Returns the initializers, nodes and constants that it must begin
    /// with.
    pub(super) fn close(&mut self) -> Begin {
        self.levels.pop().map(|l| l.begin).unwrap_or_default()
    }

    /// Returns the name of a constant that the current graph uses under the name `hint`, or that is
    /// bound to a variable. Writes the constant if needed.
    pub(super) fn name(
        &mut self,
        names: &mut Names<'m>,
        (id, literal): (LiteralId, &Literal),
        var: Option<VarId>,
        hint: Option<(NameId, &str)>,
    ) -> Result<Name<'m>, ExportProblem> {
        if let Some(name) = var.and_then(|v| self.of_var.get(&v)) {
            return Ok(name.clone());
        }
        if let Some((hint, _)) = hint
            && let Some(name) = self.bound.get(&(id, hint)).and_then(|n| n.last())
        {
            return Ok(name.clone());
        }
        if let Some(name) = self.levels.iter().find_map(|l| l.by_id.get(&id)) {
            return Ok(name.clone());
        }
        let (name, level) = self.by_contents(names, (literal, Some(id)), hint.map_or("", |h| h.1))?;
        self.levels[level].by_id.insert(id, name.clone());
        Ok(name)
    }

    /// Returns the name of a constant that the exporter adds to the current graph.
    pub(super) fn own(
        &mut self,
        names: &mut Names<'m>,
        literal: &Literal,
        wish: &str,
    ) -> Result<Name<'m>, ExportProblem> {
        Ok(self.by_contents(names, (literal, None), wish)?.0)
    }

    fn by_contents(
        &mut self,
        names: &mut Names<'m>,
        (literal, id): (&Literal, Option<LiteralId>),
        wish: &str,
    ) -> Result<(Name<'m>, usize), ExportProblem> {
        let is_small = literal.element_count() <= SMALL;
        if is_small {
            let mut levels = self.levels.iter().enumerate();
            if let Some((i, name)) = levels.find_map(|(i, l)| Some((i, l.by_contents.get(literal)?))) {
                return Ok((name.clone(), i));
            }
        }
        let is_local = !self.is_flat && literal.stored_bytes() <= SMALL_CONSTANT;
        let level = if is_local { self.levels.len() - 1 } else { 0 };
        let wish = if wish.is_empty() { "c" } else { wish };
        let name = if level == 0 { names.claim_outermost(wish) } else { names.claim(wish) };
        self.write(names, (literal, id), &name, level, |_| {})?;
        if is_small {
            self.levels[level].by_contents.insert(literal.clone(), name.clone());
        }
        Ok((name, level))
    }

    /// Binds a constant under a name of its own until the end of the current graph, and writes it.
    /// If it becomes an initializer, `finish` completes that.
    pub(super) fn bind(
        &mut self,
        names: &mut Names<'m>,
        (var, id, own): (VarId, LiteralId, NameId),
        literal: &Literal,
        name: &Name<'m>,
        finish: impl FnOnce(&mut TensorProto),
    ) -> Result<(), ExportProblem> {
        self.note(var, id, own, name);
        let level = if self.is_flat { 0 } else { self.levels.len() - 1 };
        self.write(names, (literal, Some(id)), name, level, finish)
    }

    /// Binds a constant that a node of the current graph returns.
    pub(super) fn bind_node(&mut self, (var, id, own): (VarId, LiteralId, NameId), name: &Name<'m>, node: NodeProto) {
        self.note(var, id, own, name);
        if let Some(level) = self.levels.last_mut() {
            level.begin.nodes.push(node);
        }
    }

    fn note(&mut self, var: VarId, id: LiteralId, own: NameId, name: &Name<'m>) {
        self.bound.entry((id, own)).or_default().push(name.clone());
        self.bound_as.entry(own).or_default().push(id);
        self.of_var.insert(var, name.clone());
    }

    /// Returns the constant that was last bound under a name in the open graphs, and its name in
    /// the file.
    pub(super) fn bound_as(&self, own: NameId) -> Option<(LiteralId, &str)> {
        let id = *self.bound_as.get(&own)?.last()?;
        Some((id, self.bound.get(&(id, own))?.last()?))
    }

    /// Removes a binding.
    pub(super) fn unbind(&mut self, id: LiteralId, own: NameId) {
        if let Some(names) = self.bound.get_mut(&(id, own)) {
            names.pop();
            self.bound_as.entry(own).or_default().pop();
        }
    }

    /// Writes a constant at the beginning of a graph.
    fn write(
        &mut self,
        names: &mut Names<'m>,
        (literal, id): (&Literal, Option<LiteralId>),
        name: &Name<'m>,
        level: usize,
        finish: impl FnOnce(&mut TensorProto),
    ) -> Result<(), ExportProblem> {
        if self.in_function && level == 0 {
            let constant = FunctionConstant { name: Rc::from(&**name), literal: literal.clone(), id };
            self.levels[0].begin.constants.push(constant);
            return Ok(());
        }
        if self.is_made_from_shape(literal) {
            return self.write_from_shape(names, literal, name, level);
        }
        let is_copied = level == 0 && is_copied(literal);
        let mut tensor = match is_copied {
            true => self.copied_tensor(literal)?,
            false => self.tensor(literal)?,
        };
        tensor.name = Some(name.to_string());
        if is_copied && tensor.external_data.is_empty() {
            self.copied.insert(name.to_string(), literal.clone());
        }
        finish(&mut tensor);
        self.levels[level].begin.initializers.push(tensor);
        Ok(())
    }

    /// Returns true if a constant is a splat that the options or [`MOST_SPLAT_BYTES`] make too
    /// large to be written out. If it is small enough, its bytes are added to the total.
    fn is_made_from_shape(&mut self, literal: &Literal) -> bool {
        let Some(element) = literal.as_splat() else { return false };
        let expanded = literal.expanded_bytes().map_or(u64::MAX, |b| b as u64);
        let growth = expanded.saturating_sub(element.len() as u64);
        let total = self.splat_bytes.saturating_add(growth);
        let fits = expanded <= self.max_splat_bytes && total <= self.max_total_splat_bytes.min(MOST_SPLAT_BYTES);
        if fits || expanded <= TINY_SPLAT || !self.has_constant_of_shape || !can_fill(literal.dtype()) {
            self.splat_bytes = total;
            return false;
        }
        true
    }

    fn write_from_shape(
        &mut self,
        names: &mut Names<'m>,
        literal: &Literal,
        name: &Name<'m>,
        level: usize,
    ) -> Result<(), ExportProblem> {
        let extents: Result<Vec<i64>, _> = literal.shape().iter().map(|&d| i64::try_from(d)).collect();
        let extents = extents.map_err(|_| TensorError::TooLarge(literal.shape().to_vec()))?;
        let shape = Literal::from_elements(&[extents.len()], &extents).map_err(TensorError::from)?;
        let (shape, _) = self.by_contents(names, (&shape, None), &format!("{}_shape", &**name))?;
        let element = literal.as_splat().unwrap_or_default();
        let value = tensor_of(&Literal::splat_bytes(literal.dtype(), &[1], element), 16)?;
        let value = vec![tensor_attribute("value", value)];
        let fill = node("", "ConstantOfShape", vec![shape.to_string()], vec![name.to_string()], value);
        self.levels[level].begin.nodes.push(fill);
        Ok(())
    }
}

/// Returns true if `ConstantOfShape` takes the element type in every version.
fn can_fill(dtype: DType) -> bool {
    dtype.has_kernels() && dtype != DType::BFloat16
}

/// Returns true if the elements of an initializer are written from where they are. A copy of them
/// in the encoded model would double the memory of large constants.
fn is_copied(literal: &Literal) -> bool {
    match literal.file_range() {
        Some(range) => range.len() as u64 >= COPIED,
        None => {
            let is_raw = literal.dtype().bits() >= 8;
            is_raw && written_bytes(literal).is_some_and(|bytes| bytes >= COPIED)
        }
    }
}
