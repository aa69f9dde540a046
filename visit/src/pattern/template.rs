//! Right sides of rules that are written as patterns.

use std::sync::Arc;

use anfora_ir::{AttrDefault, AttrValue, Context, ExprId, GlobalTarget, Literal, TypeError, did_you_mean};
use smallvec::SmallVec;

use crate::pattern::build::{Children, Condition, LiteralCondition, Node, OpNames, Pattern, Wanted};
use crate::pattern::capture_names::CaptureNames;
use crate::pattern::captures::{Captures, Found};
use crate::pattern::compile::{NodeMeaning, Ops, Resolved};
use crate::pattern::error::{PatternError, Refused, Side};
use crate::pattern::rewriter::Rewriter;
use crate::pattern::rule_text::ComputedValues;

/// The nodes of a right side, parts before their users.
pub(crate) struct Template {
    pub(crate) side: Resolved,
    /// The nodes to build. The pattern inside a capture is not built.
    nodes: Vec<u32>,
    /// The attributes of the calls of operators, by node.
    attrs: Vec<GivenAttrs>,
    computed: ComputedValues,
}

type GivenAttrs = SmallVec<[(Arc<str>, Wanted); 1]>;

impl Template {
    /// Compiles a right side.
    pub(crate) fn new(
        cx: &mut Context,
        pattern: &Pattern,
        computed: &ComputedValues,
        names: &mut CaptureNames,
    ) -> Result<Template, Refused> {
        names.add_computed(pattern, computed.iter().map(|(name, _)| name));
        // Parts have smaller numbers than their users.
        let mut nodes = pattern.reached(pattern.root, |node| !matches!(node, Node::Capture { .. }));
        nodes.sort_unstable();
        for &at in &nodes {
            check_buildable(pattern, at).map_err(|error| error.at(at))?;
        }
        let side = Resolved::new(cx, pattern, Side::Right, nodes.iter().copied(), names)?;
        let mut template =
            Template { side, nodes, attrs: vec![SmallVec::new(); pattern.nodes.len()], computed: computed.clone() };
        template.gather_attrs(cx)?;
        template.check_globals(cx)?;
        match pattern.is_rest(pattern.root) {
            true => Err(PatternError::Rest.at(pattern.root)),
            false => Ok(template),
        }
    }

    /// Returns the names of the operators that are called.
    pub(crate) fn operators(&self) -> impl Iterator<Item = &str> {
        let names = self.nodes.iter().map(|&at| match &self.side.pattern.nodes[at as usize] {
            Node::Op { names, .. } => names.listed(),
            _ => &[],
        });
        names.flatten().map(|name| &**name)
    }

    /// Assigns the attributes to the operator calls that have them, and checks that each call has
    /// the attributes that its operator requires.
    fn gather_attrs(&mut self, cx: &Context) -> Result<(), Refused> {
        for &at in &self.nodes {
            let Node::Filter { condition: Condition::Attr { name, value }, mut inner } =
                self.side.pattern.nodes[at as usize].clone()
            else {
                continue;
            };
            inner = self.side.pattern.through_filters(inner);
            match self.side.pattern.nodes[inner as usize] {
                Node::Op { .. } => self.attrs[inner as usize].push((name, value)),
                _ => return Err(PatternError::NotAnOperator("attributes").at(at)),
            }
        }
        for &at in &self.nodes {
            let NodeMeaning::List { ops: Ops::One(op), .. } = self.side.meanings[at as usize] else { continue };
            let row = cx.ops.get(op);
            let is_given = |attr: &str| self.attrs[at as usize].iter().any(|(name, _)| **name == *attr);
            let missing = row.attrs.iter().find(|attr| attr.default == AttrDefault::Required && !is_given(attr.name));
            if let Some(attr) = missing {
                let (op, attr) = (row.name.to_string(), attr.name.to_string());
                return Err(PatternError::MissingAttr { op, attr }.at(at));
            }
        }
        Ok(())
    }

    /// Checks that the module has the global functions that the right side names.
    fn check_globals(&self, cx: &Context) -> Result<(), Refused> {
        for &at in &self.nodes {
            let Node::Global(name) = &self.side.pattern.nodes[at as usize] else { continue };
            let is_there = |global| cx.globals.get(global).target != GlobalTarget::Missing;
            if !cx.find_global(name).is_some_and(is_there) {
                let all = cx.globals.iter().map(|(global, _)| global).filter(|&global| is_there(global));
                let near = did_you_mean(name, all.map(|global| cx.global_name(global)));
                let help = near.map(|near| format!("did you mean `@{near}`?"));
                return Err(PatternError::UnknownGlobal { name: name.to_string(), help }.at(at));
            }
        }
        Ok(())
    }

    /// Builds the replacement. Returns `None` if a capture or a computed value is missing, or if a
    /// number does not exist in the element type of the replaced node.
    pub(crate) fn build(
        &self,
        rewriter: &mut Rewriter<'_, '_>,
        captures: &Captures<'_>,
    ) -> Result<Option<ExprId>, TypeError> {
        let found = rewriter.matched(captures);
        let mut values: SmallVec<[(&str, AttrValue); 4]> = SmallVec::new();
        for (name, value) in &self.computed {
            match value(&found) {
                Some(value) => values.push((name, value)),
                None => return Ok(None),
            }
        }
        let computed = |name: &str| values.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
        // The expression built for each node; for a list, any expression.
        let mut built: Vec<ExprId> = vec![captures.root(); self.side.pattern.nodes.len()];
        for &at in &self.nodes {
            let made = match (&self.side.pattern.nodes[at as usize], self.side.meanings[at as usize]) {
                (Node::Capture { name, .. }, NodeMeaning::Slot(slot)) => match captures.found[slot as usize] {
                    Found::One(id) => Some(id),
                    _ if self.side.pattern.is_rest(at) => Some(captures.root()),
                    _ => computed(name).and_then(as_constant).map(|literal| rewriter.literal(literal)),
                },
                (Node::Link(inner) | Node::Filter { inner, .. }, _) => Some(built[*inner as usize]),
                (Node::Literal(LiteralCondition::Number(number)), _) => rewriter.number_like(*number, captures.root()),
                (Node::Literal(LiteralCondition::Whole(value)), _) => rewriter.whole_like(*value, captures.root()),
                (Node::Literal(LiteralCondition::Is(literal) | LiteralCondition::Splat(literal)), _) => {
                    Some(rewriter.literal(literal.clone()))
                }
                (Node::Global(name), _) => Some(rewriter.global(name)),
                (Node::NoneValue, _) => Some(rewriter.none()),
                (Node::Op { children, .. }, NodeMeaning::List { ops: Ops::One(op), .. }) => {
                    let operands = self.operands(*children, &built, rewriter, captures);
                    let given = self.attrs[at as usize].iter().filter_map(|(name, value)| match value {
                        Wanted::Is(value) => Some((&**name, value.clone())),
                        Wanted::Absent => None,
                        Wanted::Named(capture) => {
                            let value = computed(capture).cloned();
                            Some((&**name, value.or_else(|| captures.attr(capture).map(AttrValue::Interned))?))
                        }
                    });
                    let given: SmallVec<[(&str, AttrValue); 4]> = given.collect();
                    let attrs = rewriter.intern_attrs(given.iter().map(|(name, value)| (*name, value)));
                    match at == self.side.pattern.through_filters(self.side.pattern.root) {
                        true => Some(rewriter.call_as_root(op, &operands, attrs)?),
                        false => Some(rewriter.call_op(op, &operands, attrs)?),
                    }
                }
                (Node::Call(children), _) => match self.operands(*children, &built, rewriter, captures).split_first() {
                    Some((&function, arguments)) => Some(rewriter.call(function, arguments)?),
                    None => None,
                },
                (Node::Tuple(children), _) => {
                    let fields = self.operands(*children, &built, rewriter, captures);
                    Some(rewriter.tuple(&fields))
                }
                (Node::Proj { tuple, index: Some(index) }, _) => Some(rewriter.proj(built[*tuple as usize], *index)?),
                _ => None,
            };
            let Some(made) = made else { return Ok(None) };
            built[at as usize] = made;
        }
        Ok(Some(built[self.side.pattern.root as usize]))
    }

    /// Returns the operands to build a node with, including captured lists.
    fn operands(
        &self,
        children: Children,
        built: &[ExprId],
        rewriter: &Rewriter<'_, '_>,
        captures: &Captures<'_>,
    ) -> SmallVec<[ExprId; 4]> {
        let mut operands = SmallVec::new();
        for &child in self.side.pattern.list(children) {
            match (&self.side.pattern.nodes[child as usize], self.side.pattern.is_rest(child)) {
                (Node::Capture { name, .. }, true) => {
                    operands.extend_from_slice(captures.list(rewriter.program().1, name));
                }
                _ => operands.push(built[child as usize]),
            }
        }
        operands
    }
}

/// Returns a computed value as a constant operand.
fn as_constant(value: &AttrValue) -> Option<Literal> {
    match value {
        AttrValue::Literal(literal) => Some(literal.clone()),
        AttrValue::Ints(elements) => Literal::from_elements(&[elements.len()], elements).ok(),
        _ => None,
    }
}

/// Checks that a node is specific enough to be built.
fn check_buildable(pattern: &Pattern, at: u32) -> Result<(), PatternError> {
    let what = match &pattern.nodes[at as usize] {
        Node::Any => "a wildcard without a name",
        Node::Rest => "`rest()` without a name",
        Node::Literal(LiteralCondition::Where(_)) => "a test of a literal",
        Node::Op { names: OpNames::Several(_) | OpNames::Where(_), .. } => "a choice of operators",
        Node::Proj { index: None, .. } => "a projection of any field",
        Node::Either(_) => "a choice of alternatives",
        Node::Filter { condition: Condition::Attr { .. }, .. } => return Ok(()),
        Node::Filter { .. } => "a condition other than on an attribute",
        _ => return Ok(()),
    };
    Err(PatternError::NotBuildable(what))
}
