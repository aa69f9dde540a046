//! Types: a machine with a stack of open tuples and function types.
//!
//! A name that is not visible outside a function type is bound by the innermost function type that
//! encloses all its occurrences. This function type is known only at the end of the outermost one.
//! If some name belongs further inside, the outermost function type is read a second time.

use rustc_hash::FxHashMap;

use super::{Alias, Parsed, Parser, SourceRange};
use crate::core::entity::{DimId, NameId, SymbolId, TypeId};
use crate::report::suggest::did_you_mean;
use crate::tables::dim::Dim;
use crate::tables::dtype::DType;
use crate::text::lexer::Kind;

pub(super) enum TypeFrame {
    /// `(` …
    Tuple { base: u32, commas: bool },
    /// `fn(` …, with its number in the outermost function type.
    Params { base: u32, function: u32 },
    /// `fn(…) ->` …, with its number in the outermost function type.
    Result { base: u32, function: u32 },
}

/// The function types that are open, and the names that they bind.
#[derive(Default)]
pub(super) struct FunctionTypes {
    /// For each function type by number: the number of the enclosing one, and true if it is open.
    functions: Vec<(u32, bool)>,
    /// The numbers of the open function types.
    open: Vec<u32>,
    names: FxHashMap<NameId, usize>,
    /// Symbols, each with the number of the function type that binds it as far as is known.
    symbols: Vec<(SymbolId, u32)>,
    /// The symbols that each function type binds, by number. Only filled in the second reading.
    bound: Vec<Vec<SymbolId>>,
    second: bool,
}

impl Parser<'_, '_> {
    /// Reads a type.
    pub(super) fn parse_type(&mut self) -> Parsed<TypeId> {
        let frames = self.type_frames.len();
        let values = self.type_values.len();
        let result = self.type_machine(frames);
        self.type_frames.truncate(frames);
        self.type_values.truncate(values);
        if result.is_err() {
            self.function_types = FunctionTypes::default();
        }
        result
    }

    fn type_machine(&mut self, bottom: usize) -> Parsed<TypeId> {
        let mut outermost = self.tok.start();
        loop {
            if self.tok.kind == Kind::Fn && self.function_types.open.is_empty() {
                outermost = self.tok.start();
            }
            if let Some(ty) = self.begin_type()?
                && let Some(whole) = self.complete_type(ty, bottom, outermost)?
            {
                return Ok(whole);
            }
        }
    }

    /// Reads a type without parts, and returns it; or reads the beginning of a type with parts, and
    /// opens a frame for it.
    #[inline]
    fn begin_type(&mut self) -> Parsed<Option<TypeId>> {
        Ok(Some(match self.tok.kind {
            Kind::Tensor => self.tensor_type()?,
            Kind::Any => {
                self.next();
                self.cx.types.any()
            }
            Kind::Word => {
                let dtype = self.dtype_or_error()?;
                self.cx.types.scalar(dtype)
            }
            Kind::Alias => {
                let (alias, place) = self.alias()?;
                match alias {
                    Some(Alias::Type(ty)) => ty,
                    Some(Alias::Attr(_)) => {
                        let text = &self.text[place.range()];
                        self.error_at(place, format!("`{text}` is an attribute, not a type"));
                        self.cx.types.error()
                    }
                    None => self.cx.types.error(),
                }
            }
            Kind::LParen => {
                self.next();
                if !self.eat(Kind::RParen) {
                    let base = self.type_values.len() as u32;
                    self.type_frames.push(TypeFrame::Tuple { base, commas: false });
                    return Ok(None);
                }
                self.cx.types.unit()
            }
            Kind::Fn => {
                self.next();
                self.expect(Kind::LParen)?;
                let function = self.open_function_type();
                let base = self.type_values.len() as u32;
                self.type_frames.push(TypeFrame::Params { base, function });
                if self.tok.kind == Kind::RParen {
                    self.end_of_params()?;
                }
                return Ok(None);
            }
            _ => {
                return Err(self.unexpected_help(
                    "a type",
                    "such as `Tensor[(8,), float32]`, `float32`, `(A, B)`, `fn(A) -> B` or `Any`",
                ));
            }
        }))
    }

    /// Hands a complete type to the frame that it is part of, and so on outwards. Returns the type
    /// of the outermost frame above `bottom` if that is complete; `None` if another type has to be
    /// read first. `outermost` is the start of the outermost open function type.
    #[inline]
    fn complete_type(&mut self, mut value: TypeId, bottom: usize, outermost: u32) -> Parsed<Option<TypeId>> {
        loop {
            if self.type_frames.len() == bottom {
                return Ok(Some(value));
            }
            let Some(frame) = self.type_frames.last_mut() else { return Ok(Some(value)) };
            match frame {
                TypeFrame::Tuple { base, commas } => {
                    *commas |= self.tok.kind == Kind::Comma;
                    let (base, is_tuple) = (*base as usize, *commas);
                    self.type_values.push(value);
                    if self.comma_or(Kind::RParen)? {
                        return Ok(None);
                    }
                    self.next();
                    if is_tuple {
                        value = self.cx.types.tuple(&self.type_values[base..]);
                    }
                    self.type_values.truncate(base);
                    self.type_frames.pop();
                }
                TypeFrame::Params { .. } => {
                    self.type_values.push(value);
                    if !self.comma_or(Kind::RParen)? {
                        self.end_of_params()?;
                    }
                    return Ok(None);
                }
                TypeFrame::Result { base, function } => {
                    let (base, function) = (*base as usize, *function);
                    self.type_frames.pop();
                    let closed = self.close_function_type(base, function, value);
                    self.type_values.truncate(base);
                    match closed {
                        Some(ty) => value = ty,
                        None => {
                            // Read it again, now that the binder of each name is known.
                            self.seek(outermost);
                            return Ok(None);
                        }
                    }
                }
            }
        }
    }

    /// Reads the `)` of the parameters of a function type, and the `->`.
    fn end_of_params(&mut self) -> Parsed<()> {
        self.expect(Kind::RParen)?;
        self.expect(Kind::Arrow)?;
        if let Some(TypeFrame::Params { base, function }) = self.type_frames.pop() {
            self.type_frames.push(TypeFrame::Result { base, function });
        }
        Ok(())
    }

    fn open_function_type(&mut self) -> u32 {
        let f = &mut self.function_types;
        if f.open.is_empty() && !f.second {
            f.functions.clear();
            f.names.clear();
            f.symbols.clear();
        }
        let number = f.functions.len() as u32;
        let parent = f.open.last().copied().unwrap_or(0);
        f.functions.push((parent, true));
        f.open.push(number);
        number
    }

    /// Returns the symbol of a name that is not visible outside the open function types. Returns
    /// `None` if no function type is open.
    pub(super) fn symbol_of_function_type(&mut self, name: NameId) -> Option<SymbolId> {
        let f = &mut self.function_types;
        let &innermost = f.open.last()?;
        if let Some(&i) = f.names.get(&name) {
            let (symbol, binder) = &mut f.symbols[i];
            while !f.second && !f.functions[*binder as usize].1 {
                *binder = f.functions[*binder as usize].0;
            }
            return Some(*symbol);
        }
        let symbol = self.cx.types.dims.new_symbol(name);
        f.names.insert(name, f.symbols.len());
        f.symbols.push((symbol, innermost));
        if self.new_symbols.is_some() {
            self.names_in_function_types.push(name);
        }
        Some(symbol)
    }

    /// Makes a function type. Returns `None` if the outermost one must be read again.
    fn close_function_type(&mut self, base: usize, function: u32, ret: TypeId) -> Option<TypeId> {
        let f = &mut self.function_types;
        f.functions[function as usize].1 = false;
        f.open.pop();
        let outermost = f.open.is_empty();
        let mut binds = Vec::new();
        if f.second {
            binds = f.bound.get_mut(function as usize).map(std::mem::take).unwrap_or_default();
            if outermost {
                f.second = false;
                f.bound.clear();
            }
        } else if outermost && !f.symbols.is_empty() {
            if f.symbols.iter().any(|&(_, binder)| binder != function) {
                f.bound = vec![Vec::new(); f.functions.len()];
                for &(symbol, binder) in &f.symbols {
                    f.bound[binder as usize].push(symbol);
                }
                f.functions.clear();
                f.second = true;
                return None;
            }
            binds.extend(f.symbols.iter().map(|&(s, _)| s));
        }
        Some(self.cx.types.function(&self.type_values[base..], ret, &binds))
    }

    /// Reads `Tensor[…]`.
    fn tensor_type(&mut self) -> Parsed<TypeId> {
        self.next();
        self.expect(Kind::LBracket)?;
        let shape = if self.eat(Kind::Question) {
            None
        } else {
            if self.tok.kind != Kind::LParen {
                return Err(
                    self.unexpected_help("`?` or `(`", "a shape is `(2, n)`, `(8,)`, `()` or, of unknown rank, `?`")
                );
            }
            Some(self.dim_list(true)?)
        };
        self.expect(Kind::Comma)?;
        let dtype = self.dtype_or_error()?;
        let ty = match shape {
            None => self.cx.types.unranked(dtype),
            Some(dims) => self.cx.types.tensor(dtype, &dims),
        };
        if !self.eat(Kind::Comma) {
            self.expect(Kind::RBracket)?;
            return Ok(ty);
        }
        let start = self.tok.start();
        let elements = self.known_elements()?;
        let place = self.since(start);
        self.expect(Kind::RBracket)?;
        Ok(self.type_with_elements(ty, &elements, place))
    }

    /// Reads known elements: `n`, or `[n, 4]`.
    fn known_elements(&mut self) -> Parsed<smallvec::SmallVec<[DimId; 8]>> {
        let mut elements = smallvec::SmallVec::new();
        if !self.eat(Kind::LBracket) {
            elements.push(self.known_element()?);
            return Ok(elements);
        }
        self.list(Kind::RBracket, |p| {
            elements.push(p.known_element()?);
            Ok(())
        })?;
        Ok(elements)
    }

    fn known_element(&mut self) -> Parsed<DimId> {
        let element = self.parse_dim()?;
        if let Dim::Symbol(symbol) = *self.cx.types.dims.get(element)
            && self.function_types.open.is_empty()
        {
            self.bind_symbol(symbol);
        }
        Ok(element)
    }

    /// Returns the type with these elements. If it cannot have them, reports an error and returns
    /// the type without them.
    fn type_with_elements(&mut self, ty: TypeId, elements: &[DimId], place: SourceRange) -> TypeId {
        let with = self.cx.types.with_elements(ty, elements);
        let unknown = self.cx.types.dims.unknown();
        let said = self.cx.types.elements(with).unwrap_or_default();
        let kept = said.iter().filter(|&&d| d != unknown).count();
        if kept == elements.iter().filter(|&&d| d != unknown).count() {
            return with;
        }
        let found = self.cx.type_text(ty);
        let message = match self.cx.types.element_count(ty) {
            Some(count) if count != elements.len() => {
                format!("{} elements, but {found} has {count}", elements.len())
            }
            Some(_) => format!("{found} cannot have such elements"),
            None => format!("the elements of {found} cannot be said"),
        };
        let help = "tensors of integers and bool of constant extents, and of few elements, say them; but for int64, they are constants";
        self.error_help(place, message, help);
        ty
    }

    /// Reads `(` dimensions `)` of a tensor type or of a `shape(…)`.
    pub(super) fn dim_list(&mut self, of_type: bool) -> Parsed<smallvec::SmallVec<[DimId; 8]>> {
        self.expect(Kind::LParen)?;
        let mut dims = smallvec::SmallVec::new();
        self.list(Kind::RParen, |p| {
            let start = p.tok.start();
            let dim = p.parse_dim()?;
            if of_type {
                p.check_extent(dim, start);
            }
            dims.push(dim);
            Ok(())
        })?;
        Ok(dims)
    }

    fn check_extent(&mut self, dim: DimId, start: u32) {
        match *self.cx.types.dims.get(dim) {
            Dim::Symbol(symbol) if self.function_types.open.is_empty() => self.bind_symbol(symbol),
            Dim::Const(c) if c < 0 => {
                let place = self.since(start);
                self.error_help(
                    place,
                    format!("the dimension is {c}"),
                    "an extent is 0 or more; `?` where it is not known",
                );
            }
            _ => {}
        }
    }

    /// Reads the name of an element type.
    pub(super) fn dtype_or_error(&mut self) -> Parsed<DType> {
        let tok = self.tok;
        if tok.kind != Kind::Word {
            return Err(self.unexpected("an element type"));
        }
        let word = self.slice(tok);
        self.next();
        if let Ok(dtype) = word.parse() {
            return Ok(dtype);
        }
        let names = DType::ALL.iter().map(|d| d.name()).chain(["Tensor", "Any"]);
        let help = match did_you_mean(word, names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "such as float32, int64 or bool".to_string(),
        };
        self.error_help(tok, format!("unknown element type `{word}`"), help);
        // The text after it can still be read.
        Ok(DType::Float32)
    }

    /// Reads `!NAME`. Returns `None` after an error if the alias is not defined.
    pub(super) fn alias(&mut self) -> Parsed<(Option<Alias>, SourceRange)> {
        let tok = self.expect(Kind::Alias)?;
        let place = SourceRange::from(tok);
        let name = self.name(tok);
        if let Some(&(alias, _)) = self.aliases.get(&name) {
            return Ok((Some(alias), place));
        }
        let text = self.cx.names.get(name).to_string();
        let mut names: Vec<&str> = self.aliases.keys().map(|&n| self.cx.names.get(n)).collect();
        names.sort_unstable();
        let help = match did_you_mean(&text, names) {
            Some(near) => format!("did you mean `!{near}`?"),
            None => format!("define it before: `type !{text} = …;` or `attr !{text} = …;`"),
        };
        self.error_help(place, format!("unknown alias `!{text}`"), help);
        Ok((None, place))
    }
}
