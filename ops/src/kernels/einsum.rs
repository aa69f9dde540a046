//! Sums of products over named axes.
//!
//! Operands are processed from left to right. Axes that neither the result nor a later operand
//! names are summed as soon as possible. Each product of two operands is one stack of matrix
//! products, and every sum is in ascending index order.

use anfora_ir::{DType, Literal, Shape, element_count};
use smallvec::SmallVec;

use super::index::{permute_dims, strided};
use super::matmul::matmul;
use super::reduction::{Axes, Reduce, reduce};
use super::strides::{Strides, row_major};
use super::{Failure, shape_text};

/// The minimum of the limit on the elements of an intermediate product that is not a splat. The
/// limit is larger if the operands have many stored elements.
const MOST_ELEMENTS: usize = 1 << 20;

/// The name of an axis.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Label {
    /// An axis of the ellipsis, counted from the last.
    Unnamed(usize),
    /// A letter.
    Letter(u8),
}

/// The names of the axes of one operand, or of the result.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Term {
    before: Vec<u8>,
    after: Vec<u8>,
    ellipsis: bool,
}

impl Term {
    fn parse(text: &str) -> Result<Term, Failure> {
        let bad = |what: &str| Failure::Mismatch(format!("the term `{}` has {what}", text.trim()));
        let mut term = Term::default();
        let mut rest = text.as_bytes();
        while let Some((&c, tail)) = rest.split_first() {
            rest = tail;
            match c {
                b' ' => {}
                b'.' if !term.ellipsis && tail.starts_with(b"..") => {
                    term.ellipsis = true;
                    rest = &tail[2..];
                }
                c if c.is_ascii_alphabetic() && term.ellipsis => term.after.push(c),
                c if c.is_ascii_alphabetic() => term.before.push(c),
                _ => return Err(bad("something that is neither a letter nor one ellipsis")),
            }
        }
        Ok(term)
    }

    fn letters(&self) -> impl Iterator<Item = u8> {
        self.before.iter().chain(&self.after).copied()
    }

    /// Returns true if the term has an ellipsis.
    pub(crate) fn has_ellipsis(&self) -> bool {
        self.ellipsis
    }

    /// Returns the number of named axes.
    pub(crate) fn named(&self) -> usize {
        self.before.len() + self.after.len()
    }

    /// Returns the labels of the axes, of which the ellipsis has `unnamed`.
    pub(crate) fn labels(&self, unnamed: usize) -> Vec<Label> {
        let letters = |list: &[u8]| list.iter().map(|&c| Label::Letter(c)).collect::<Vec<_>>();
        [letters(&self.before), (0..unnamed).rev().map(Label::Unnamed).collect(), letters(&self.after)].concat()
    }

    /// Returns the labels of the axes of an operand of rank `rank`.
    pub(crate) fn labels_of(&self, rank: usize) -> Result<Vec<Label>, Failure> {
        match rank.checked_sub(self.named()) {
            Some(unnamed) if unnamed == 0 || self.ellipsis => Ok(self.labels(unnamed)),
            _ => Err(Failure::Mismatch(format!("{} names for an operand of rank {rank}", self.named()))),
        }
    }
}

/// A parsed equation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Equation {
    pub(crate) operands: Vec<Term>,
    pub(crate) result: Term,
}

impl Equation {
    /// Reads `terms,…->result`. Without an arrow, the result has the axes of the ellipsis and then,
    /// in alphabetical order, the letters that occur once.
    ///
    /// # Errors
    /// If it is not an equation of that number of operands.
    pub(crate) fn parse(text: &str, operands: usize) -> Result<Equation, Failure> {
        let (left, right) = match text.split_once("->") {
            Some((left, right)) => (left, Some(right)),
            None => (text, None),
        };
        let terms: Vec<Term> = left.split(',').map(Term::parse).collect::<Result<_, _>>()?;
        if terms.len() != operands {
            return Err(Failure::Mismatch(format!("the equation has {} terms for {operands} operands", terms.len())));
        }
        let mut counts = [0usize; 128];
        for c in terms.iter().flat_map(Term::letters) {
            counts[usize::from(c)] += 1;
        }
        let ellipsis = terms.iter().any(|t| t.ellipsis);
        let result = match right {
            Some(right) => Term::parse(right)?,
            None => {
                Term { before: vec![], after: (0..128u8).filter(|&c| counts[usize::from(c)] == 1).collect(), ellipsis }
            }
        };
        let mut seen = [false; 128];
        for c in result.letters() {
            if counts[usize::from(c)] == 0 || std::mem::replace(&mut seen[usize::from(c)], true) {
                let c = char::from(c);
                return Err(Failure::Mismatch(format!("the result names `{c}` twice, or no operand does")));
            }
        }
        if result.ellipsis && !ellipsis {
            return Err(Failure::Mismatch("the result has an ellipsis, and no operand does".into()));
        }
        Ok(Equation { operands: terms, result })
    }
}

/// A tensor whose axes have distinct labels.
struct Named {
    tensor: Literal,
    labels: Vec<Label>,
}

impl Named {
    /// Labels the axes of `x`. Axes with the same label become their diagonal.
    fn new(x: &Literal, labels: &[Label]) -> Result<Named, Failure> {
        let mut shape = Shape::new();
        let mut strides = Strides::new();
        let mut kept: Vec<Label> = Vec::new();
        for ((&label, &extent), &stride) in labels.iter().zip(x.shape()).zip(&row_major(x.shape())) {
            match kept.iter().position(|&k| k == label) {
                None => {
                    kept.push(label);
                    shape.push(extent);
                    strides.push(stride);
                }
                Some(at) if shape[at] == extent => strides[at] = strides[at].saturating_add(stride),
                Some(_) => {
                    return Err(Failure::Mismatch(format!("axes of one name differ in {}", shape_text(x.shape()))));
                }
            }
        }
        let tensor = if kept.len() == labels.len() { x.clone() } else { strided(x, &shape, &strides, 0)? };
        Ok(Named { tensor, labels: kept })
    }

    /// Sums over all axes except those for which `keep` returns true.
    fn sum_but(self, keep: impl Fn(Label) -> bool) -> Result<Named, Failure> {
        let summed: Vec<i64> = (0..self.labels.len()).filter(|&i| !keep(self.labels[i])).map(|i| i as i64).collect();
        if summed.is_empty() {
            return Ok(self);
        }
        let axes = Axes::new(Some(&summed), self.labels.len(), false)?;
        let labels = self.labels.into_iter().filter(|&l| keep(l)).collect();
        Ok(Named { tensor: reduce(Reduce::Sum, &self.tensor, &axes)?, labels })
    }

    fn extent(&self, label: Label) -> Option<usize> {
        self.labels.iter().position(|&l| l == label).map(|i| self.tensor.shape()[i])
    }

    /// Returns the tensor with its axes in the order of the groups, and each group merged into one
    /// axis. The tensor is broadcast along the labels that it does not have.
    fn grouped(&self, groups: [&[(Label, usize)]; 3], most: usize) -> Result<Literal, Failure> {
        let from = row_major(self.tensor.shape());
        let (mut shape, mut strides) = (Shape::new(), Strides::new());
        let mut merged: SmallVec<[usize; 3]> = SmallVec::new();
        for group in groups {
            let mut product = 1usize;
            for &(label, extent) in group {
                let at = self.labels.iter().position(|&l| l == label);
                let at = at.filter(|&i| self.tensor.shape()[i] == extent);
                shape.push(extent);
                strides.push(at.map_or(0, |i| from[i]));
                product = product.checked_mul(extent).ok_or(Failure::TooLarge)?;
            }
            merged.push(product);
        }
        let is_large = element_count(&shape).is_none_or(|n| n > most);
        if is_large && self.tensor.as_splat().is_none() {
            return Err(Failure::TooLarge);
        }
        strided(&self.tensor, &shape, &strides, 0)?.reshaped(&merged).map_err(|_| Failure::TooLarge)
    }

    /// Returns the product with another tensor, summed over the common axes for which `keep`
    /// returns false.
    fn times(self, other: Named, keep: impl Fn(Label) -> bool, most: usize) -> Result<Named, Failure> {
        let both = |label| self.extent(label).zip(other.extent(label));
        let broadcast = |extents: (usize, usize)| match extents {
            (a, b) if a == b => Ok(a),
            (1, b) => Ok(b),
            (a, 1) => Ok(a),
            (a, b) => Err(Failure::Mismatch(format!("axes of one name have the extents {a} and {b}"))),
        };
        let (mut batch, mut rows, mut depth, mut columns) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for &label in &self.labels {
            match both(label) {
                Some(extents) => {
                    let group = if keep(label) { &mut batch } else { &mut depth };
                    group.push((label, broadcast(extents)?));
                }
                None => rows.push((label, self.extent(label).unwrap_or(1))),
            }
        }
        columns.extend(other.labels.iter().filter(|&&l| both(l).is_none()).map(|&l| (l, other.extent(l).unwrap_or(1))));
        let left = self.grouped([&batch, &rows, &depth], most)?;
        let right = other.grouped([&batch, &depth, &columns], most)?;
        let all = [batch, rows, columns].concat();
        let shape: Shape = all.iter().map(|&(_, extent)| extent).collect();
        let is_splat = left.as_splat().is_some() && right.as_splat().is_some();
        if !is_splat && element_count(&shape).is_none_or(|n| n > most) {
            return Err(Failure::TooLarge);
        }
        let tensor = matmul(&left, &right)?.reshaped(&shape).map_err(|_| Failure::TooLarge)?;
        Ok(Named { tensor, labels: all.into_iter().map(|(label, _)| label).collect() })
    }
}

/// Returns the sum of products that an equation specifies.
pub(crate) fn einsum(operands: &[&Literal], equation: &Equation) -> Result<Literal, Failure> {
    if let Some(x) = operands.iter().find(|x| x.dtype() == DType::Bool) {
        return Err(Failure::ElementType(x.dtype()));
    }
    let unnamed = operands.iter().zip(&equation.operands).map(|(x, t)| x.rank().saturating_sub(t.named())).max();
    let result = equation.result.labels(if equation.result.ellipsis { unnamed.unwrap_or(0) } else { 0 });
    let named: Vec<Vec<Label>> =
        operands.iter().zip(&equation.operands).map(|(x, t)| t.labels_of(x.rank())).collect::<Result<_, _>>()?;
    let stored: usize = operands.iter().filter(|x| x.as_splat().is_none()).map(|x| x.element_count()).sum();
    let most = stored.saturating_mul(64).max(MOST_ELEMENTS);
    let mut so_far: Option<Named> = None;
    for (i, (x, labels)) in operands.iter().zip(&named).enumerate() {
        let later = |label: Label| result.contains(&label) || named[i + 1..].iter().any(|n| n.contains(&label));
        let next = Named::new(x, labels)?;
        so_far = Some(match so_far {
            None => next.sum_but(later)?,
            Some(first) => {
                let needed = |label: Label| later(label) || first.labels.contains(&label);
                let next = next.sum_but(needed)?;
                first.times(next, later, most)?
            }
        });
    }
    let Some(all) = so_far else { return Err(Failure::Mismatch("no operand".into())) };
    let axis = |label: &Label| all.labels.iter().position(|l| l == label).map(|i| i as i64);
    let order: Option<Vec<i64>> = result.iter().map(axis).collect();
    let order = order.ok_or_else(|| Failure::Mismatch("the result names an axis that no operand has".into()))?;
    permute_dims(&all.tensor, Some(&order))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counting(shape: &[usize]) -> Literal {
        let n: usize = shape.iter().product();
        Literal::from_elements(shape, &(0..n as i32).map(|i| i % 7 - 2).collect::<Vec<_>>()).unwrap()
    }

    fn of(equation: &str, operands: &[&Literal]) -> Result<Literal, Failure> {
        einsum(operands, &Equation::parse(equation, operands.len())?)
    }

    fn ints(l: &Literal) -> Vec<i32> {
        l.elements::<i32>().unwrap().into_owned()
    }

    #[test]
    fn one_operand() {
        let x = counting(&[3, 3]);
        let v = ints(&x);
        assert_eq!(of("ij->ji", &[&x]).unwrap(), permute_dims(&x, None).unwrap());
        assert_eq!(ints(&of("ii->i", &[&x]).unwrap()), [v[0], v[4], v[8]]);
        assert_eq!(ints(&of("ii", &[&x]).unwrap()), [v[0] + v[4] + v[8]]);
        assert_eq!(ints(&of(" i j -> i ", &[&x]).unwrap())[0], v[0] + v[1] + v[2]);
        assert_eq!(of("...ii->...i", &[&counting(&[2, 3, 3])]).unwrap().shape(), &[2, 3]);
        assert_eq!(of("ba", &[&counting(&[2, 3])]).unwrap().shape(), &[3, 2]);
        assert_eq!(of("->", &[&Literal::scalar(3i32)]).unwrap(), Literal::scalar(3i32));
        assert_eq!(of("i->", &[&counting(&[0])]).unwrap(), Literal::scalar(0i32));
    }

    #[test]
    fn products() {
        let (a, b, c) = (counting(&[2, 3]), counting(&[3, 4]), counting(&[4, 2]));
        assert_eq!(of("ij,jk", &[&a, &b]).unwrap(), matmul(&a, &b).unwrap());
        assert_eq!(of("ij,jk->ki", &[&a, &b]).unwrap(), permute_dims(&matmul(&a, &b).unwrap(), None).unwrap());
        let all = of("ij,jk,kl->il", &[&a, &b, &c]).unwrap();
        assert_eq!(all, matmul(&matmul(&a, &b).unwrap(), &c).unwrap());
        let trace: i32 = ints(&all).iter().step_by(3).sum();
        assert_eq!(ints(&of("ij,jk,ki->", &[&a, &b, &c]).unwrap()), [trace]);
        let (x, y) = (counting(&[5, 1, 2, 3]), counting(&[4, 3, 2]));
        assert_eq!(of("...ij,...jk->...ik", &[&x, &y]).unwrap(), matmul(&x, &y).unwrap());
        assert_eq!(of("i,j->ij", &[&counting(&[2]), &counting(&[3])]).unwrap().shape(), &[2, 3]);
        let (p, q) = (Literal::splat(&[1 << 30, 3], 2i32), Literal::splat(&[3, 1 << 30], 3i32));
        assert_eq!(of("ij,jk->ik", &[&p, &q]).unwrap(), Literal::splat(&[1 << 30, 1 << 30], 18i32));
    }

    #[test]
    fn an_extent_of_one_broadcasts_under_a_letter() {
        let x = counting(&[2, 3]);
        let v = ints(&x);
        let five = Literal::splat(&[1], 5i32);
        assert_eq!(ints(&of("ij,j->i", &[&x, &five]).unwrap()), [5 * (v[0] + v[1] + v[2]), 5 * (v[3] + v[4] + v[5])]);
        assert_eq!(of("j,ij->i", &[&five, &x]).unwrap(), of("ij,j->i", &[&x, &five]).unwrap());
        assert_eq!(ints(&of("i,i,i->", &[&five, &five, &counting(&[3])]).unwrap()), [25 * (v[0] + v[1] + v[2])]);
        assert_eq!(of("bi,bi->bi", &[&counting(&[1, 3]), &counting(&[4, 1])]).unwrap().shape(), &[4, 3]);
        assert_eq!(of("i,i->i", &[&five, &counting(&[0])]).unwrap().shape(), &[0]);
    }

    #[test]
    fn what_is_no_equation() {
        let x = counting(&[2, 3]);
        for bad in ["i", "ij,jk", "ij->k", "ij->ii", "i1", "i..j", "......", "ij->...", "ii", "ijk", "->", "ij->i->j"] {
            assert!(of(bad, &[&x]).is_err(), "{bad}");
        }
        assert!(of("ij,j", &[&x, &counting(&[2])]).is_err());
        assert!(of("ii", &[&counting(&[1, 3])]).is_err(), "a diagonal does not broadcast");
    }
}
