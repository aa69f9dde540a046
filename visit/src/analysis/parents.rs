//! Where each expression hangs.

use anfora_ir::{Body, EntityId, ExprId, SideTable};

use crate::analysis::links::for_each_link;
use crate::link::Link;

/// The links at which each expression of a function hangs: what [`Link::target`] goes down, up again.
///
/// What binds, a Let or an If or a Lambda, hangs at one link; a node that several others refer to, and an atom, at any number. What cannot be reached from
/// the body's root hangs nowhere. To be made takes two walks, and eight bytes a link; [`DefUse`](crate::DefUse) takes more and can be kept up to date.
///
/// It speaks of the body as it was when it was made. Any edit is legal while it exists, but for compaction, which renumbers: see [`Parents::check`].
///
/// ```
/// # use anfora_ir::{FunctionBuilder, Module, OpRegistry};
/// # use std::sync::Arc;
/// use anfora_visit::{Link, Parents};
/// # let mut module = Module::new(Arc::new(OpRegistry::new()));
/// # let unit = module.cx.types.unit();
/// # let mut f = FunctionBuilder::new(&mut module, "main");
/// # let a = f.param("a", unit);
/// # let shared = f.tuple(&[a]);
/// # let pair = f.tuple(&[shared, shared]);
/// # let key = f.finish(pair).unwrap();
/// // %0 = (%a,); (%0, %0)
/// let body = &module.get(key).unwrap().body;
/// let parents = Parents::of(body);
/// assert_eq!(parents.only(pair), Some(Link::Root));
/// assert_eq!(parents.links(shared).collect::<Vec<_>>(), [Link::Operand(pair, 0), Link::Operand(pair, 1)]);
/// assert_eq!(parents.only(shared), None);
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Parents {
    /// Where the links of each expression end in `places`; they begin where those of the expression before it end.
    ends: SideTable<ExprId, u32>,
    places: Vec<Place>,
}

/// A link, in eight bytes.
#[derive(Copy, Clone, PartialEq, Debug)]
struct Place {
    parent: Option<ExprId>,
    /// The number of an operand, or one of the numbers below.
    slot: u32,
}

const ROOT: Place = Place { parent: None, slot: 0 };
const REST: u32 = u32::MAX;
const VALUE: u32 = u32::MAX - 1;
const COND: u32 = u32::MAX - 2;
const THEN: u32 = u32::MAX - 3;
const ELSE: u32 = u32::MAX - 4;
const LAMBDA: u32 = u32::MAX - 5;

impl Place {
    #[inline]
    fn of(link: Link) -> Place {
        let (parent, slot) = match link {
            Link::Root => return ROOT,
            Link::Rest(id) => (id, REST),
            Link::Value(id) => (id, VALUE),
            Link::Cond(id) => (id, COND),
            Link::Then(id) => (id, THEN),
            Link::Else(id) => (id, ELSE),
            Link::Lambda(id) => (id, LAMBDA),
            Link::Operand(id, i) => (id, i),
        };
        Place { parent: Some(parent), slot }
    }

    #[inline]
    fn link(self) -> Link {
        let Some(id) = self.parent else { return Link::Root };
        match self.slot {
            REST => Link::Rest(id),
            VALUE => Link::Value(id),
            COND => Link::Cond(id),
            THEN => Link::Then(id),
            ELSE => Link::Else(id),
            LAMBDA => Link::Lambda(id),
            i => Link::Operand(id, i),
        }
    }
}

impl Parents {
    /// The links of everything that can be reached from a body's root. Linear.
    pub fn of(body: &Body) -> Parents {
        let mut ends: SideTable<ExprId, u32> = body.side_table(0);
        ends.set(body.root(), 1);
        for_each_link(body, body.root(), |_, target| *ends.get_mut(target) += 1);
        let mut sum = 0;
        for (id, _) in body.exprs() {
            // For now where its links begin; each that is put in moves it on, in the end to where they end.
            let count = ends.get_mut(id);
            (*count, sum) = (sum, sum + *count);
        }
        let mut places = vec![ROOT; sum as usize];
        *ends.get_mut(body.root()) += 1;
        for_each_link(body, body.root(), |link, target| {
            let next = ends.get_mut(target);
            places[*next as usize] = Place::of(link);
            *next += 1;
        });
        Parents { ends, places }
    }

    fn places(&self, id: ExprId) -> &[Place] {
        let end = self.ends[id] as usize;
        let start = match id.index().checked_sub(1) {
            Some(before) => self.ends[ExprId::from_index(before)] as usize,
            None => 0,
        };
        // What was appended since has none.
        self.places.get(start..end).unwrap_or(&[])
    }

    /// The links at which an expression hangs, in [`pre_order`](crate::pre_order) of the nodes that hold them; for a variable, its uses.
    pub fn links(&self, id: ExprId) -> impl DoubleEndedIterator<Item = Link> + ExactSizeIterator + '_ {
        self.places(id).iter().map(|place| place.link())
    }

    /// The link at which an expression hangs, if it is the only one.
    pub fn only(&self, id: ExprId) -> Option<Link> {
        match self.places(id) {
            [place] => Some(place.link()),
            _ => None,
        }
    }

    /// Whether an expression can be reached from the body's root.
    pub fn is_reachable(&self, id: ExprId) -> bool {
        !self.places(id).is_empty()
    }

    /// Asserts that this belongs to the present generation of the body.
    ///
    /// # Panics
    /// If the body was compacted since.
    pub fn check(&self, body: &Body) {
        body.check_table(&self.ends);
    }
}
