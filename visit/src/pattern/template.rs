//! The right side of a rule, where it is written as a pattern.

use std::sync::Arc;

use anfora_ir::{AttrDef, AttrDefault, AttrValue, Context, ExprId, Literal, Number, OpId, TypeError};
use smallvec::SmallVec;

use crate::pattern::build::{Condition, LiteralCondition, Node, OpNames, Pattern, Wanted};
use crate::pattern::captures::Captures;
use crate::pattern::compile::{CaptureKind, Compiled, check_attr_of, for_each_child, rest_of, through_links};
use crate::pattern::error::{PatternError, Refused, arity_text};
use crate::pattern::rewriter::Rewriter;

/// What to build, parts before what they are parts of.
pub(crate) struct Template {
    parts: Vec<Part>,
    operands: Vec<u32>,
}

enum Part {
    Capture(Arc<str>),
    /// What a `rest()` captured: several operands of what it is a part of.
    List(Arc<str>),
    Number(Number),
    Whole(i64),
    Literal(Literal),
    Global(Arc<str>),
    NoneValue,
    Op {
        op: OpId,
        start: u32,
        len: u32,
        attrs: Vec<(Arc<str>, Wanted)>,
    },
    Call {
        start: u32,
        len: u32,
    },
    Tuple {
        start: u32,
        len: u32,
    },
    Proj {
        tuple: u32,
        index: u32,
    },
}

impl Template {
    /// Makes a right side ready.
    pub(crate) fn new(cx: &mut Context, pattern: &Pattern, left: &mut Compiled) -> Result<Template, Refused> {
        let mut template = Template { parts: Vec::new(), operands: Vec::new() };
        let mut numbers: Vec<Option<u32>> = vec![None; pattern.nodes.len()];
        let mut stack = vec![pattern.root];
        while let Some(&at) = stack.last() {
            if numbers[at as usize].is_some() {
                stack.pop();
                continue;
            }
            let height = stack.len();
            let node = &pattern.nodes[at as usize];
            // A capture stands for itself, whatever it is the capture of.
            if !matches!(node, Node::Capture { .. }) {
                for_each_child(pattern, node, |child| {
                    if numbers[child as usize].is_none() {
                        stack.push(child);
                    }
                });
                stack[height..].reverse();
            }
            if stack.len() == height {
                let part = template.part(cx, pattern, at, &numbers, left).map_err(|error| error.at(at))?;
                numbers[at as usize] = Some(part);
                stack.pop();
            }
        }
        for (at, number) in numbers.iter().enumerate() {
            if let (Node::Op { .. }, Some(number)) = (&pattern.nodes[at], number) {
                template.check_call(cx, *number).map_err(|error| error.at(at as u32))?;
            }
        }
        match template.parts.last() {
            Some(Part::List(_)) => Err(PatternError::Rest.at(pattern.root)),
            _ => Ok(template),
        }
    }

    fn part(
        &mut self,
        cx: &mut Context,
        pattern: &Pattern,
        at: u32,
        numbers: &[Option<u32>],
        left: &mut Compiled,
    ) -> Result<u32, PatternError> {
        let number = |child: u32| numbers[child as usize].expect("parts are made before what they are parts of");
        let part = match &pattern.nodes[at as usize] {
            Node::Capture { name, .. } => {
                let kind = left.kind(name)?;
                match rest_of(pattern, through_links(pattern, at)) {
                    Some(_) if kind == CaptureKind::List => Part::List(Arc::clone(name)),
                    None if kind == CaptureKind::Expression => Part::Capture(Arc::clone(name)),
                    _ => return Err(PatternError::MixedCapture(name.to_string())),
                }
            }
            Node::Link(inner) => return Ok(number(*inner)),
            Node::Literal(LiteralCondition::Number(value)) => Part::Number(*value),
            Node::Literal(LiteralCondition::Whole(value)) => Part::Whole(*value),
            Node::Literal(LiteralCondition::Is(literal) | LiteralCondition::Splat(literal)) => {
                Part::Literal(literal.clone())
            }
            Node::Global(name) => Part::Global(Arc::clone(name)),
            Node::NoneValue => Part::NoneValue,
            Node::Op { names: OpNames::One(name), children, .. } => {
                let op = cx.ops.resolve(name).map_err(PatternError::UnknownOp)?;
                let (start, len) = self.list(pattern, children.start, children.len, number);
                Part::Op { op, start, len, attrs: Vec::new() }
            }
            Node::Call(children) => {
                let (start, len) = self.list(pattern, children.start, children.len, number);
                Part::Call { start, len }
            }
            Node::Tuple(children) => {
                let (start, len) = self.list(pattern, children.start, children.len, number);
                Part::Tuple { start, len }
            }
            Node::Proj { tuple, .. } if rest_of(pattern, through_links(pattern, *tuple)).is_some() => {
                return Err(PatternError::Rest);
            }
            Node::Proj { tuple, index: Some(index) } => Part::Proj { tuple: number(*tuple), index: *index },
            Node::Filter { condition: Condition::Attr { name, value }, inner } => {
                let inner = number(*inner);
                match &mut self.parts[inner as usize] {
                    Part::Op { op, attrs, .. } => {
                        let op_name = cx.ops.get(*op).name.to_string();
                        check_attr_of(cx, &op_name, name, value)?;
                        if let Wanted::Named(capture) = value {
                            if left.kind(capture)? != CaptureKind::Attribute {
                                return Err(PatternError::MixedCapture(capture.to_string()));
                            }
                            left.note_attr(cx, &op_name, name, capture)?;
                        }
                        attrs.push((Arc::clone(name), value.clone()));
                    }
                    _ => return Err(PatternError::NotAnOperator("attributes")),
                }
                return Ok(inner);
            }
            Node::Any => return Err(PatternError::NotBuildable("a wildcard without a name")),
            Node::Rest => return Err(PatternError::NotBuildable("`rest()` without a name")),
            Node::Hole(_) => return Err(PatternError::Hole),
            Node::Literal(_) => return Err(PatternError::NotBuildable("a test of a literal")),
            Node::Op { .. } => return Err(PatternError::NotBuildable("a choice of operators")),
            Node::Proj { .. } => return Err(PatternError::NotBuildable("a projection of any field")),
            Node::Either(_) => return Err(PatternError::NotBuildable("a choice of alternatives")),
            Node::Filter { .. } => return Err(PatternError::NotBuildable("a condition other than on an attribute")),
        };
        self.parts.push(part);
        Ok(self.parts.len() as u32 - 1)
    }

    /// Checks that a call has as many operands, and the attributes, that its operator asks for.
    fn check_call(&self, cx: &Context, number: u32) -> Result<(), PatternError> {
        let Part::Op { op, start, len, ref attrs } = self.parts[number as usize] else { return Ok(()) };
        let row = cx.ops.get(op);
        let operands = &self.operands[start as usize..][..len as usize];
        let is_list = |part: &&u32| matches!(self.parts[**part as usize], Part::List(_));
        let lists = operands.iter().filter(is_list).count();
        let found = operands.len() - lists;
        let fits = match lists {
            0 => row.arity.accepts(found),
            _ => row.arity.max.is_none_or(|max| found <= max),
        };
        if !fits {
            return Err(PatternError::Arity { op: row.name.to_string(), wanted: arity_text(row.arity), found });
        }
        let is_missing = |attr: &&AttrDef| {
            attr.default == AttrDefault::Required && !attrs.iter().any(|(name, _)| **name == *attr.name)
        };
        match row.attrs.iter().find(is_missing) {
            Some(attr) => Err(PatternError::MissingAttr { op: row.name.to_string(), attr: attr.name.to_string() }),
            None => Ok(()),
        }
    }

    fn list(&mut self, pattern: &Pattern, start: u32, len: u32, number: impl Fn(u32) -> u32) -> (u32, u32) {
        let at = self.operands.len() as u32;
        let children = &pattern.children[start as usize..][..len as usize];
        self.operands.extend(children.iter().map(|&c| number(c)));
        (at, len)
    }

    /// Builds it. `None` where a capture is missing, or a number does not exist in the element type
    /// of what is replaced.
    pub(crate) fn build(
        &self,
        rewriter: &mut Rewriter<'_, '_>,
        captures: &Captures<'_>,
    ) -> Result<Option<ExprId>, TypeError> {
        let mut built: Vec<ExprId> = Vec::with_capacity(self.parts.len());
        let mut operands: Vec<ExprId> = Vec::new();
        for part in &self.parts {
            let mut gather = |built: &[ExprId], start: u32, len: u32| {
                operands.clear();
                for &number in &self.operands[start as usize..][..len as usize] {
                    match &self.parts[number as usize] {
                        Part::List(name) => operands.extend_from_slice(captures.list(rewriter.program().1, name)),
                        _ => operands.push(built[number as usize]),
                    }
                }
                std::mem::take(&mut operands)
            };
            let id = match part {
                Part::Capture(name) => match captures.get(name) {
                    Some(id) => id,
                    None => return Ok(None),
                },
                // Taken from the captures where it is an operand.
                Part::List(_) => captures.root(),
                Part::Number(number) => match rewriter.number_like(*number, captures.root()) {
                    Some(id) => id,
                    None => return Ok(None),
                },
                Part::Whole(value) => match rewriter.whole_like(*value, captures.root()) {
                    Some(id) => id,
                    None => return Ok(None),
                },
                Part::Literal(literal) => rewriter.literal(literal.clone()),
                Part::Global(name) => rewriter.global(name),
                Part::NoneValue => rewriter.none(),
                Part::Op { op, start, len, attrs } => {
                    let list = gather(&built, *start, *len);
                    let given = attrs.iter().filter_map(|(name, value)| match value {
                        Wanted::Is(value) => Some((&**name, value.clone())),
                        Wanted::Absent => None,
                        Wanted::Named(capture) => Some((&**name, AttrValue::Interned(captures.attr(capture)?))),
                    });
                    let given: SmallVec<[(&str, AttrValue); 4]> = given.collect();
                    let attrs = rewriter.intern_attrs(given.iter().map(|(name, value)| (*name, value)));
                    rewriter.call_op(*op, &list, attrs)?
                }
                Part::Call { start, len } => match gather(&built, *start, *len).split_first() {
                    Some((&function, arguments)) => rewriter.call(function, arguments)?,
                    None => return Ok(None),
                },
                Part::Tuple { start, len } => {
                    let list = gather(&built, *start, *len);
                    rewriter.tuple(&list)
                }
                Part::Proj { tuple, index } => rewriter.proj(built[*tuple as usize], *index)?,
            };
            built.push(id);
        }
        Ok(built.last().copied())
    }
}
