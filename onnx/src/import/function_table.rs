//! The functions of a model that may become functions of the module, and the copies of them that
//! exist already.

use std::rc::Rc;

use anfora_ir::{AttrId, GlobalId, LiteralId, NameId, Names, TypeId};
use bytes::Bytes;
use prost::Message;
use rustc_hash::{FxHashMap, FxHashSet};

use super::function_attributes::{Arguments, declared, room_for};
use super::warnings::Notes;
use crate::domains::is_standard;
use crate::error::{ImportError, ImportProblem, UnsupportedReason, because};
use crate::keys;
use crate::node_counts::NodeCounts;
use crate::proto::{FunctionProto, ModelProto, NodeProto, OperatorSetIdProto, for_each_node};

/// The functions of a model that may become functions of the module. They stay encoded until they
/// are called.
#[derive(Default)]
pub(super) struct FunctionTable {
    /// All functions of the model.
    pub(super) encoded: Vec<Bytes>,
    /// The number of nodes of all functions.
    pub(super) nodes: NodeCounts,
    pub(super) entries: Vec<Entry>,
    pub(super) by_name: FxHashMap<Box<str>, u32>,
    /// The versions of operators that functions import: one entry for all functions with the same
    /// imports.
    pub(super) opsets: Vec<Opsets>,
    /// The versions of domains that only functions import.
    pub(super) further_opsets: Vec<(String, i64)>,
    /// See `Settings::written` in `importer.rs`.
    pub(super) written: Rc<FxHashMap<String, i64>>,
    pub(super) names: FxHashSet<NameId>,
    pub(super) counters: FxHashMap<NameId, u64>,
    /// The symbols of the functions that are finished.
    pub(super) symbols: FxHashSet<AttrId>,
    /// See [`room_for`].
    pub(super) room: usize,
}

/// Returns domain, name and overload as a single text.
fn full_name(domain: &str, name: &str, overload: &str) -> Box<str> {
    format!("{}.{}:{domain}{name}{overload}", domain.len(), name.len()).into()
}

pub(super) struct Entry {
    /// The index among the functions of the model.
    pub(super) position: u32,
    /// The index of the operator versions of the function in [`FunctionTable::opsets`].
    pub(super) opsets: u32,
    pub(super) inputs: u32,
    pub(super) outputs: u32,
    /// For each input, true if the file states its type; empty if the file states no types.
    pub(super) says_types: Box<[bool]>,
    /// The number of trailing inputs that are constants.
    pub(super) constants: u32,
    /// The attributes that the function declares.
    pub(super) declared: Rc<Arguments>,
    pub(super) copies: Vec<Copy>,
    /// The number of copies that were requested.
    pub(super) asked: u8,
    /// True if the function is in the domain of this crate.
    pub(super) is_own: bool,
    /// True while a copy is being made.
    pub(super) is_open: bool,
    /// True if a call of the function was kept as a node, so that the file must keep the function.
    pub(super) is_kept: bool,
    /// The reason why the function cannot be imported.
    pub(super) failure: Option<Box<UnsupportedReason>>,
}

/// The versions of operators that functions import.
pub(super) struct Opsets {
    pub(super) versions: Rc<FxHashMap<String, i64>>,
    /// See `Settings::differing` in `importer.rs`.
    pub(super) differing: Rc<FxHashSet<String>>,
}

/// A function of the module.
pub(super) struct Copy {
    pub(super) global: GlobalId,
    pub(super) variant: Variant,
    pub(super) is_impure: bool,
}

/// The properties that calls of the same copy share, besides the types.
#[derive(PartialEq)]
pub(super) struct Variant {
    /// For each of the trailing constant inputs, the literal if the call gives a constant.
    pub(super) constants: Box<[Option<LiteralId>]>,
    /// For each of the other inputs, up to the last one that the call gives, true if the call gives
    /// it.
    pub(super) given: Box<[bool]>,
    /// See `key_of` in `function_attributes.rs`.
    pub(super) attributes: Box<[u8]>,
}

/// A copy that a call requests.
pub(super) struct Request {
    pub(super) entry: usize,
    pub(super) variant: Variant,
    pub(super) arguments: Rc<Arguments>,
    /// The types of the call, if they are used instead of the types that the file states.
    pub(super) types: Option<Vec<TypeId>>,
    /// True if the types of the call contradict those of the file.
    pub(super) contradicts: bool,
}

impl FunctionTable {
    /// Returns the functions of a model that may be imported. Functions of the standard domain are
    /// excluded: the format does not say whether such a function or the operator of its name is
    /// meant.
    ///
    /// `of_model` contains the versions that the model imports. `unclear` lists the domains that
    /// the model imports in two versions. `size` is the size of the file in bytes.
    ///
    /// # Errors
    /// If a function is malformed.
    pub(super) fn new(
        encoded: Vec<Bytes>,
        of_model: &FxHashMap<String, i64>,
        unclear: &[String],
        size: usize,
    ) -> Result<FunctionTable, ImportProblem> {
        let mut table = FunctionTable { room: room_for(size), ..FunctionTable::default() };
        table.entries.reserve_exact(encoded.len());
        let mut versions = of_model.clone();
        let mut known: FxHashMap<(bool, Vec<(String, i64)>), u32> = FxHashMap::default();
        let undeclared = Rc::new(Arguments::default());
        let unclear: FxHashSet<&str> = unclear.iter().map(String::as_str).collect();
        let mut twice = FxHashSet::default();
        for (position, bytes) in encoded.iter().enumerate() {
            let proto = FunctionProto::decode(bytes.clone())?;
            for_each_node(&proto.node, |node| table.nodes.add(node))?;
            let (opsets, imported_twice) = opset_versions(&proto.opset_import);
            if proto.name().is_empty() || is_standard(proto.domain()) || !imported_twice.is_empty() {
                continue;
            }
            let is_own = proto.domain() == keys::OWN_DOMAIN;
            let imports: Vec<(String, i64)> =
                opset_imports(&proto).map(|(domain, version)| (domain.to_owned(), version)).collect();
            let differing = table.differing(&imports, &mut versions, &unclear);
            let opsets = *known.entry((is_own, imports)).or_insert_with(|| {
                let differing = if is_own { FxHashSet::default() } else { differing };
                table.opsets.push(Opsets { versions: Rc::new(opsets), differing: Rc::new(differing) });
                number(table.opsets.len() - 1)
            });
            let constants = entry_of(&proto, keys::GIVEN).filter(|_| is_own).and_then(|n| n.parse().ok()).unwrap_or(0);
            let declared = declared(&proto);
            let stated: FxHashSet<&str> =
                proto.value_info.iter().filter(|i| i.r#type.is_some()).map(|i| i.name()).collect();
            let says_types = proto.input.iter().map(|name| stated.contains(name.as_str()));
            let entry = Entry {
                position: number(position),
                opsets,
                inputs: number(proto.input.len()),
                outputs: number(proto.output.len()),
                says_types: if stated.is_empty() { Box::default() } else { says_types.collect() },
                constants: number(proto.input.len().min(constants)),
                declared: if declared.is_empty() { Rc::clone(&undeclared) } else { Rc::new(declared) },
                copies: Vec::new(),
                asked: 0,
                is_own,
                is_open: false,
                is_kept: false,
                failure: None,
            };
            let name = full_name(proto.domain(), proto.name(), proto.overload());
            if table.by_name.insert(name.clone(), number(table.entries.len())).is_some() {
                twice.insert(name);
            }
            table.entries.push(entry);
        }
        table.by_name.retain(|name, _| !twice.contains(name));
        table.written = Rc::new(versions);
        table.encoded = encoded;
        Ok(table)
    }

    /// Returns the domains that the model imports in another version than `imports`. If the model
    /// does not import a domain, the version of the function becomes the version of the model.
    fn differing(
        &mut self,
        imports: &[(String, i64)],
        versions: &mut FxHashMap<String, i64>,
        unclear: &FxHashSet<&str>,
    ) -> FxHashSet<String> {
        let mut differing = FxHashSet::default();
        for (domain, version) in imports {
            match versions.get(domain) {
                Some(v) if v != version => {
                    differing.insert(domain.clone());
                }
                Some(_) => {}
                None if unclear.contains(domain.as_str()) => {
                    differing.insert(domain.clone());
                }
                None => {
                    versions.insert(domain.clone(), *version);
                    self.further_opsets.push((domain.clone(), *version));
                }
            }
        }
        differing
    }

    /// Returns the function that a node calls.
    pub(super) fn called_by(&self, node: &NodeProto) -> Option<usize> {
        if self.entries.is_empty() {
            return None;
        }
        self.by_name.get(&full_name(node.domain(), node.op_type(), node.overload())).map(|&i| i as usize)
    }

    /// Returns the encoded functions except those that became functions of the module. Removes the
    /// parts of the model that only describe the imported functions.
    ///
    /// # Errors
    /// If a function is malformed.
    pub(super) fn without_imported(self, model: &mut ModelProto) -> Result<Vec<Bytes>, ImportProblem> {
        if self.entries.iter().all(|e| e.copies.is_empty()) {
            return Ok(self.encoded);
        }
        let mut kept = vec![true; self.encoded.len()];
        for entry in self.entries.iter().filter(|e| !e.copies.is_empty() && !e.is_kept) {
            kept[entry.position as usize] = false;
        }
        // Preserved functions need the functions that they call.
        let mut waiting: Vec<usize> = (0..kept.len()).filter(|&i| kept[i]).collect();
        let mut has_own = false;
        while let Some(i) = waiting.pop() {
            let proto = FunctionProto::decode(self.encoded[i].clone())?;
            has_own |= proto.domain() == keys::OWN_DOMAIN;
            for_each_node(&proto.node, |node| {
                if let Some(entry) = self.called_by(node)
                    && !std::mem::replace(&mut kept[self.entries[entry].position as usize], true)
                {
                    waiting.push(self.entries[entry].position as usize);
                }
            })?;
        }
        let of_functions = self.further_opsets.iter().filter(|(domain, _)| domain != keys::OWN_DOMAIN);
        model.opset_import.extend(
            of_functions
                .map(|(domain, version)| OperatorSetIdProto { domain: Some(domain.clone()), version: Some(*version) }),
        );
        if !has_own {
            model.opset_import.retain(|o| o.domain() != keys::OWN_DOMAIN);
        }
        if let Some(i) = model.metadata_props.iter().position(|e| e.key() == keys::PLAIN_IR_VERSION)
            && let Ok(version) = model.metadata_props[i].value().parse()
        {
            model.ir_version = Some(version);
            model.metadata_props.remove(i);
        }
        let mut kept = kept.into_iter();
        Ok(self.encoded.into_iter().filter(|_| kept.next().unwrap_or(true)).collect())
    }

    /// Marks the function of `request` as one that cannot be imported, so that it is preserved in
    /// encoded form.
    ///
    /// # Errors
    /// Returns `error` if it is an error of the whole file: if `request` is `None`, if the function
    /// is in the domain of this crate, or if the function is recursive.
    pub(super) fn give_up(
        &mut self,
        request: Option<Request>,
        error: ImportError,
        notes: &Notes,
    ) -> Result<(), ImportError> {
        let Some(request) = request else { return Err(error) };
        let entry = &mut self.entries[request.entry];
        let is_recursion = matches!(error.problem, ImportProblem::Recursion(_));
        if entry.is_own || is_recursion {
            return Err(error);
        }
        entry.is_open = false;
        let why = because(format!("its function cannot be one of the module: {error}"));
        entry.failure = Some(Box::new(why));
        notes.drop_copy();
        Ok(())
    }

    /// Returns a name that no other function has, based on `wish`.
    pub(super) fn unique_name(&mut self, names: &mut Names, wish: &str) -> String {
        let wished = names.intern(wish);
        if self.names.is_empty() {
            self.names.insert(names.intern("main"));
        }
        let mut name = wish.to_owned();
        while !self.names.insert(names.intern(&name)) {
            let n = self.counters.entry(wished).or_insert(0);
            *n += 1;
            name = format!("{wish}_{n}");
        }
        name
    }
}

/// Returns the versions of the operators that a model imports, by domain. Also returns the domains
/// that it imports in two versions; these have no entry.
pub(super) fn opset_versions(imports: &[OperatorSetIdProto]) -> (FxHashMap<String, i64>, Vec<String>) {
    let mut versions = FxHashMap::default();
    let mut twice = Vec::new();
    for o in imports {
        let domain = if is_standard(o.domain()) { "" } else { o.domain() };
        if versions.insert(domain.to_owned(), o.version()).is_some_and(|before| before != o.version()) {
            twice.push(domain.to_owned());
        }
    }
    twice.iter().for_each(|domain| {
        versions.remove(domain);
    });
    (versions, twice)
}

/// Returns an index into a list of parts of the file, as 32 bits. The index fits: each part takes
/// at least one byte, and the importer refuses files of 2^32 bytes.
fn number(place: usize) -> u32 {
    u32::try_from(place).expect("import refuses files of 2^32 bytes")
}

/// Returns the versions that a function imports, by domain.
fn opset_imports(proto: &FunctionProto) -> impl Iterator<Item = (&str, i64)> {
    proto.opset_import.iter().map(|o| (if is_standard(o.domain()) { "" } else { o.domain() }, o.version()))
}

pub(super) fn entry_of<'a>(proto: &'a FunctionProto, key: &str) -> Option<&'a str> {
    proto.metadata_props.iter().find(|e| e.key() == key).map(|e| e.value())
}
