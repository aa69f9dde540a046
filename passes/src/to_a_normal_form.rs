//! # ToANormalForm
//!
//! ```text
//! Notation   e an expression, n a call, tuple or projection, v a new variable, B a block.
//! Needs      Nothing: any form.
//! Effect     op(.., n, ..)               =>  let v = n; op(.., v, ..)
//!              likewise where n is an If or a lambda
//!            let w = { bs e }; rest      =>  bs let w = e; rest
//!              likewise for a block as an operand
//!            A node n that several others refer to is bound once: at its first use in the
//!            innermost block B that encloses all of its uses.
//!            Operands are evaluated from left to right, as before. Impure calls keep their order.
//!            A new Let in front of a Let of a dataflow region joins the region.
//!            Functions with the attribute Primitive are rewritten too: A-normal form is a property
//!            of all functions of a module.
//! Not done   The tail of a block, and the value of a Let, may be compound, as A-normal form
//!            allows. Nothing is merged.
//! Cost       Two walks; the innermost common block of two is found in time logarithmic in the
//!            nesting depth. Idempotent; a body in A-normal form is left as it is after one walk.
//!
//! before     def @f(%x: int32) {                after   def @f(%x: int32) {
//!              %s = add(%x, 1);                           let %0 = add(%x, 1);
//!              multiply(%s, negative(%s))                 let %1 = negative(%0);
//!            }                                            multiply(%0, %1)
//!                                                       }
//! ```

use anfora_ir::{Body, Context, EntityId, Expr, ExprId, Invariant, RegionWriter, VarFlags, VarId};
use anfora_manager::register_pass;
use anfora_visit::{Blocks, Link, set_var_flags};

register_pass! {
    /// Binds every call, tuple and projection that is an operand, once
    pub TO_A_NORMAL_FORM = FunctionPass("ToANormalForm", 0).establishing(["anf"]);
    run |edit, _, cx| {
        cx.count("bound", to_a_normal_form(edit.cx, &mut edit.function.body) as u64);
        Ok(())
    }
}

/// Converts a function to A-normal form, and returns the number of new bindings.
pub fn to_a_normal_form(cx: &Context, body: &mut Body) -> usize {
    if Invariant::ANormalForm.holds_in(cx, body) {
        return 0;
    }
    let homes = Homes::of(body);
    let states = vec![BlockState::at(Link::Root); homes.blocks.len()];
    let mut pass = Emitter { cx, atoms: vec![None; body.len()], homes, states, frames: Vec::new(), made: 0, body };
    pass.run();
    pass.made
}

const NOWHERE: u32 = u32::MAX;

/// The blocks in which the nodes of a body are evaluated, after chains in values and operands are
/// dissolved. Such a chain becomes part of the enclosing block.
struct Homes {
    blocks: Blocks,
    /// By block: itself, or the block into which it is dissolved.
    dissolved: Vec<u32>,
    /// By If and Lambda: the number of its first block. The second block of an If has the next
    /// number.
    inner: Vec<u32>,
}

impl Homes {
    fn of(body: &Body) -> Homes {
        let blocks = Blocks::of(body);
        let mut dissolved: Vec<u32> = Vec::with_capacity(blocks.len());
        let mut inner = vec![NOWHERE; body.len()];
        for block in blocks.ids() {
            let number = block.index() as u32;
            dissolved.push(match (blocks.link(block), blocks.parent(block)) {
                (Link::Value(_) | Link::Cond(_) | Link::Operand(..), Some(parent)) => dissolved[parent.index()],
                (Link::Then(id) | Link::Lambda(id), _) => {
                    inner[id.index()] = number;
                    number
                }
                _ => number,
            });
        }
        Homes { blocks, dissolved, inner }
    }

    /// Returns the block in which a node is evaluated.
    fn home(&self, id: ExprId) -> u32 {
        self.blocks.block(id).map_or(NOWHERE, |block| self.dissolved[block.index()])
    }
}

/// The state of a block to which bindings are appended.
#[derive(Copy, Clone)]
struct BlockState {
    /// The link for the next Let or the tail.
    last: Link,
    /// The present dataflow region, if there is one.
    regions: RegionWriter,
}

impl BlockState {
    fn at(last: Link) -> BlockState {
        BlockState { last, regions: RegionWriter::default() }
    }
}

/// The destination of an evaluated expression.
#[derive(Copy, Clone)]
enum Destination {
    /// An operand: an atom replaces the expression.
    Operand,
    /// The value of this Let.
    Value(ExprId),
    /// The tail of the block.
    Tail,
}

#[derive(Copy, Clone)]
enum Frame {
    /// The rest of a chain, with bindings that go to `block` and a tail that goes to `to`.
    Chain { at: ExprId, block: u32, to: Destination, region: ChainRegion },
    /// A compound node, with the number of its next child.
    Node { id: ExprId, child: u32, block: u32, to: Destination },
    /// After the tail of a chain that is an operand: the replacement of the tail replaces the
    /// chain.
    Alias { chain: ExprId, tail: ExprId },
}

/// The regions of the bindings of a chain.
#[derive(Copy, Clone, PartialEq)]
enum ChainRegion {
    /// The chain's own regions; its tail is outside.
    Own,
    /// The region of an enclosing binding, which contains the whole chain.
    Enclosing,
}

struct Emitter<'a> {
    cx: &'a Context,
    body: &'a mut Body,
    homes: Homes,
    states: Vec<BlockState>,
    /// By bound node: the variable.
    atoms: Vec<Option<ExprId>>,
    frames: Vec<Frame>,
    made: usize,
}

impl Emitter<'_> {
    fn run(&mut self) {
        let root = self.body.root();
        self.frames.push(Frame::Chain { at: root, block: 0, to: Destination::Tail, region: ChainRegion::Own });
        while let Some(frame) = self.frames.pop() {
            match frame {
                Frame::Chain { at, block, to, region } => self.chain(at, block, to, region),
                Frame::Node { id, child, block, to } => self.node(id, child, block, to),
                Frame::Alias { chain, tail } => self.atoms[chain.index()] = self.atom(tail),
            }
        }
    }

    /// Returns the replacement of an expression, if it is known.
    fn atom(&self, id: ExprId) -> Option<ExprId> {
        if self.body.expr(id).is_atom() { Some(id) } else { self.atoms.get(id.index()).copied().flatten() }
    }

    fn chain(&mut self, at: ExprId, block: u32, to: Destination, region: ChainRegion) {
        let state = &mut self.states[block as usize];
        let Expr::Let { var, value, body: rest, flags } = self.body.expr(at) else {
            if region == ChainRegion::Own {
                state.regions.end();
            }
            self.evaluate(at, block, to);
            return;
        };
        match region {
            ChainRegion::Own => state.regions.follow(flags),
            ChainRegion::Enclosing => set_var_flags(self.body, var, VarFlags::DATAFLOW),
        }
        self.frames.push(Frame::Chain { at: rest, block, to, region });
        self.evaluate(value, block, Destination::Value(at));
    }

    fn evaluate(&mut self, id: ExprId, block: u32, to: Destination) {
        if let Some(atom) = self.atom(id) {
            self.deliver(atom, block, to);
            return;
        }
        if let Expr::Let { .. } = self.body.expr(id) {
            let is_inside = self.states[block as usize].regions.is_open();
            let region = if is_inside { ChainRegion::Enclosing } else { ChainRegion::Own };
            self.frames.push(Frame::Chain { at: id, block, to, region });
            return;
        }
        self.frames.push(Frame::Node { id, child: 0, block, to });
    }

    /// Continues with a node: evaluates its next child or, after the last one, moves the node to
    /// its destination.
    fn node(&mut self, id: ExprId, child: u32, block: u32, to: Destination) {
        if let Some(atom) = self.atom(id) {
            self.deliver(atom, block, to);
            return;
        }
        // The operands of a node are evaluated in the node's block.
        let home = self.homes.home(id);
        let inputs = self.body.inputs(id);
        let blocks_from = inputs.len() as u32;
        // Skip atoms.
        if let Some(i) = (child as usize..inputs.len()).find(|&i| self.atom(inputs[i]).is_none()) {
            let operand = inputs[i];
            self.frames.push(Frame::Node { id, child: i as u32 + 1, block, to });
            self.evaluate_operand(operand, home);
            return;
        }
        // Then evaluate the blocks of the node.
        let child = child.max(blocks_from);
        let inner = self.homes.inner[id.index()];
        let (start, place, inner) = match (self.body.expr(id), child - blocks_from) {
            (Expr::If { then_block, .. }, 0) => (then_block, Link::Then(id), inner),
            (Expr::If { else_block, .. }, 1) => (else_block, Link::Else(id), inner + 1),
            (Expr::Lambda { body: start, .. }, 0) => (start, Link::Lambda(id), inner),
            _ => {
                self.settle(id);
                self.deliver(id, block, to);
                return;
            }
        };
        self.frames.push(Frame::Node { id, child: child + 1, block, to });
        self.states[inner as usize] = BlockState::at(place);
        let (to, region) = (Destination::Tail, ChainRegion::Own);
        self.frames.push(Frame::Chain { at: start, block: inner, to, region });
    }

    fn evaluate_operand(&mut self, id: ExprId, block: u32) {
        if let Expr::Let { .. } = self.body.expr(id)
            && self.atom(id).is_none()
        {
            let tail = self.body.tail(id);
            self.frames.push(Frame::Alias { chain: id, tail });
        }
        self.evaluate(id, block, Destination::Operand);
    }

    /// Replaces the operands of a node by atoms.
    fn settle(&mut self, id: ExprId) {
        match self.body.expr(id) {
            Expr::CallOp { operands, .. } | Expr::Call { operands, .. } | Expr::Tuple(operands) => {
                for i in 0..operands.len() {
                    let atom = self.settled(self.body.operand(operands, i));
                    self.body.set_operand(operands, i, atom);
                }
            }
            Expr::Proj { tuple, index } => {
                let tuple = self.settled(tuple);
                self.body.set_expr(id, Expr::Proj { tuple, index });
            }
            Expr::If { cond, .. } => {
                let atom = self.settled(cond);
                Link::Cond(id).set(self.body, atom);
            }
            _ => {}
        }
    }

    fn settled(&self, id: ExprId) -> ExprId {
        self.atom(id).expect("operands are evaluated before the node")
    }

    /// Moves an atom, or a node whose operands are atoms, to its destination. A node that is needed
    /// in another block is bound in its own block.
    fn deliver(&mut self, id: ExprId, block: u32, to: Destination) {
        let here = self.body.expr(id).is_atom() || self.homes.home(id) == block;
        match to {
            Destination::Operand => {
                if !self.body.expr(id).is_atom() {
                    self.bind(id);
                }
            }
            Destination::Value(at) => {
                let value = if here { id } else { self.bind(id) };
                Link::Value(at).set(self.body, value);
                if let Expr::Let { var, .. } = self.body.expr(at)
                    && !self.body.expr(value).is_atom()
                {
                    self.atoms[value.index()] = Some(var.expr());
                    if self.homes.blocks.is_shared(value) && self.body.is_dataflow_var(var) {
                        set_var_flags(self.body, var, VarFlags::PLAIN);
                    }
                }
                self.states[block as usize].regions.write(self.body, at);
                self.hang(block, at);
                self.states[block as usize].last = Link::Rest(at);
            }
            Destination::Tail => {
                let tail = if here { id } else { self.bind(id) };
                self.hang(block, tail);
            }
        }
    }

    fn hang(&mut self, block: u32, id: ExprId) {
        self.states[block as usize].last.set(self.body, id);
    }

    /// Binds a node to a new variable at the current end of its block. In a region, a node with
    /// several uses may be used outside, so its variable becomes an output.
    fn bind(&mut self, id: ExprId) -> ExprId {
        let block = self.homes.home(id);
        let regions = &mut self.states[block as usize].regions;
        let var_flags = if self.homes.blocks.is_shared(id) { VarFlags::PLAIN } else { regions.var_flags() };
        let flags = regions.next_flags();
        let span = self.body.span(id);
        let ty = self.body.ty(id);
        let var: VarId = self.body.push_var(None, var_flags, ty, span);
        // The next Let or the tail replaces the variable as the rest.
        let link = self.body.push(Expr::Let { var, value: id, body: var.expr(), flags }, self.cx.types.unit(), span);
        self.hang(block, link);
        self.states[block as usize].last = Link::Rest(link);
        if let Some(meta) = self.body.meta(id) {
            self.body.set_meta(id, None);
            self.body.set_meta(var.expr(), Some(meta));
        }
        self.atoms[id.index()] = Some(var.expr());
        self.made += 1;
        var.expr()
    }
}
