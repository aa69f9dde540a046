//! Memory: the accounting, the limit, and garbage collection.

use crate::error::EvalErrorKind;
use crate::machine::{Activation, Frame, Machine, State, Step};
use crate::value::{Entry, Ref, Target};

/// The number of bytes at which the first garbage collection starts.
pub(crate) const FIRST_COLLECTION: usize = 64 << 20;

impl Machine<'_> {
    pub(crate) fn out_of_memory(&self) -> EvalErrorKind {
        EvalErrorKind::Memory(self.limits.bytes)
    }

    /// Returns the bytes of values, activations, frames and operands.
    #[inline]
    pub(crate) fn total(&self) -> usize {
        self.used + self.frames.len() * size_of::<Frame>() + self.operands.len() * size_of::<Ref>()
    }

    /// Fails if `bytes` more bytes exceed the limit, not counting garbage. All live values must be
    /// on one of the machine's stacks or in `state`.
    pub(crate) fn reserve(&mut self, bytes: usize, state: State) -> Step<()> {
        if self.total().saturating_add(bytes) > self.limits.bytes {
            self.collect(state)?;
            if self.total().saturating_add(bytes) > self.limits.bytes {
                return Err(self.out_of_memory());
            }
        }
        Ok(())
    }

    /// Frees all unreachable values and activations, and fails if too much is left. `state` is the
    /// next step of the machine.
    pub(crate) fn collect(&mut self, state: State) -> Step<()> {
        let mut marks = Marks {
            values: vec![false; self.values.len()],
            activations: vec![false; self.activations.len()],
            refs: self.operands.clone(),
            outer: self.frames.iter().map(|f| f.activation).collect(),
        };
        marks.outer.dedup();
        marks.outer.push(self.activation);
        if let State::Give(value) = state {
            marks.refs.push(value);
        }
        for effect in &self.trace {
            marks.refs.extend(effect.operands.iter().map(|o| o.as_ref()));
        }
        marks.run(self);
        let Marks { values, activations, .. } = marks;
        self.used = self.values.sweep(|i| values.get(i).copied().unwrap_or(false)) + self.codes_bytes();
        for (index, slot) in self.activations.iter_mut().enumerate() {
            match slot {
                Some(a) if activations.get(index).copied().unwrap_or(false) => self.used += a.bytes(),
                Some(_) => {
                    *slot = None;
                    self.free_activations.push(index as u32);
                }
                None => {}
            }
        }
        // A sixteenth of the limit must be left, since a program at its limit would collect garbage
        // at every step.
        let total = self.total();
        if total > self.limits.bytes - self.limits.bytes / 16 {
            return Err(self.out_of_memory());
        }
        self.collect_at = total.saturating_mul(2).max(FIRST_COLLECTION).min(self.limits.bytes);
        Ok(())
    }

    /// Keeps only the values that the result and the trace need, and makes them independent of the
    /// module. Returns the new result.
    pub(crate) fn export(&mut self, result: Ref) -> Step<Ref> {
        let result = self.exported(result)?;
        let mut trace = std::mem::take(&mut self.trace);
        for effect in &mut trace {
            for operand in &mut effect.operands {
                *operand = crate::value::ValueId::from_ref(self.exported(operand.as_ref())?);
            }
        }
        self.trace = trace;
        // Exports the fields of tuples, level by level.
        let mut seen = vec![false; self.values.len()];
        let mut stack = vec![result];
        stack.extend(self.trace.iter().flat_map(|e| e.operands.iter().map(|o| o.as_ref())));
        while let Some(value) = stack.pop() {
            let Target::Value(at) = value.target() else { continue };
            if seen.get(at).copied().unwrap_or(false) {
                continue;
            }
            if at >= seen.len() {
                seen.resize(at + 1, false);
            }
            seen[at] = true;
            match self.values.entry(at) {
                Some(Entry::Tuple(fields)) => {
                    let mut fields = fields.clone();
                    for field in &mut fields {
                        let value = self.exported(field.as_ref())?;
                        *field = crate::value::ValueId::from_ref(value);
                        stack.push(value);
                    }
                    self.values.replace(at, Entry::Tuple(fields));
                }
                Some(Entry::Closure { .. } | Entry::Partial { .. }) => self.values.replace(at, Entry::Function),
                _ => {}
            }
        }
        seen.resize(self.values.len(), false);
        self.values.sweep(|i| seen[i]);
        Ok(result)
    }

    /// Returns a value that does not refer to the module.
    fn exported(&mut self, value: Ref) -> Step<Ref> {
        let entry = match value.target() {
            Target::Value(_) => return Ok(value),
            Target::Literal(id) => Entry::Tensor(self.cx.literals.get(id).clone()),
            Target::Global(_) | Target::Operator => Entry::Function,
            Target::Absent => Entry::Absent,
        };
        self.values.insert(entry).ok_or_else(|| self.out_of_memory())
    }
}

impl Activation {
    fn bytes(&self) -> usize {
        size_of::<Activation>() + self.slots.len() * size_of::<Ref>() + self.kept.len() * 16
    }
}

/// The marks and the worklists of a garbage collection.
struct Marks {
    values: Vec<bool>,
    activations: Vec<bool>,
    refs: Vec<Ref>,
    outer: Vec<u32>,
}

impl Marks {
    fn run(&mut self, machine: &Machine<'_>) {
        loop {
            if let Some(value) = self.refs.pop() {
                let Target::Value(at) = value.target() else { continue };
                let Some(mark @ false) = self.values.get_mut(at) else { continue };
                *mark = true;
                match machine.values.entry(at) {
                    Some(Entry::Tuple(fields)) => self.refs.extend(fields.iter().map(|f| f.as_ref())),
                    Some(Entry::Closure { activation, .. }) => self.outer.push(*activation),
                    Some(Entry::Partial { function, captures }) => {
                        self.refs.push(*function);
                        self.refs.extend_from_slice(captures);
                    }
                    _ => {}
                }
            } else if let Some(activation) = self.outer.pop() {
                let Some(mark @ false) = self.activations.get_mut(activation as usize) else { continue };
                *mark = true;
                if let Some(Some(a)) = machine.activations.get(activation as usize) {
                    self.outer.extend([a.parent, a.jump]);
                    self.refs.extend(a.slots.iter().copied().filter(|&r| r != Ref::EMPTY));
                    self.refs.extend(a.kept.values().copied());
                }
            } else {
                return;
            }
        }
    }
}
