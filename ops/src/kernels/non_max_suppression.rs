//! The selection of boxes that overlap little with boxes of a higher score.

use anfora_ir::{DType, Literal};

use super::number::Calc;
use super::view::View;
use super::working::{check_steps, product};
use super::{Failure, shape_text};

/// The attributes and the operands that are numbers.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Selection {
    /// True if a box is given by its centre and extents, and not by two corners.
    pub(crate) center_point_box: bool,
    /// The most boxes of each class.
    pub(crate) most: usize,
    /// A box that overlaps a selected one by a larger part of their union is not selected.
    pub(crate) overlap: f32,
    /// A box with at most this score is not selected.
    pub(crate) score: Option<f32>,
}

/// Returns the one number of an operand.
///
/// # Errors
/// If it is not one number.
fn one_of(number: &Literal) -> Result<&Literal, Failure> {
    match number.element_count() {
        1 => Ok(number),
        _ => Err(Failure::Mismatch(format!("{} instead of one number", shape_text(number.shape())))),
    }
}

impl Selection {
    /// Returns the attributes with the numbers of operands.
    ///
    /// # Errors
    /// If an operand is not one number of its type.
    pub(crate) fn new(
        center_point_box: bool,
        most: Option<&Literal>,
        [overlap, score]: [Option<&Literal>; 2],
    ) -> Result<Selection, Failure> {
        let float = |l: &Literal| match one_of(l)?.dtype() {
            DType::Float32 => Ok(View::<f32>::new(l).get(0)),
            other => Err(Failure::ElementType(other)),
        };
        let most = match most.map(one_of).transpose()? {
            None => 0,
            Some(l) if l.dtype() == DType::Int64 => usize::try_from(View::<i64>::new(l).get(0)).unwrap_or(0),
            Some(l) => return Err(Failure::ElementType(l.dtype())),
        };
        let overlap = overlap.map(float).transpose()?.unwrap_or(0.0);
        Ok(Selection { center_point_box, most, overlap, score: score.map(float).transpose()? })
    }
}

/// The numbers of batches, classes and boxes.
fn extents(boxes: &Literal, scores: &Literal) -> Result<[usize; 3], Failure> {
    match (boxes.shape(), scores.shape()) {
        (&[batches, count, 4], &[of_scores, classes, scored]) if batches == of_scores && count == scored => {
            Ok([batches, classes, count])
        }
        (b, s) => {
            Err(Failure::Mismatch(format!("boxes of shape {} with scores of shape {}", shape_text(b), shape_text(s))))
        }
    }
}

/// Returns the most rows of the result; `None` if their number overflows.
pub(crate) fn most_rows(boxes: &Literal, scores: &Literal, most: usize) -> Option<usize> {
    let [batches, classes, count] = extents(boxes, scores).ok()?;
    batches.checked_mul(classes)?.checked_mul(count.min(most))
}

/// Returns the number of steps: each box is compared with the selected ones.
pub(crate) fn steps(boxes: &Literal, scores: &Literal, most: usize) -> Option<u128> {
    let [batches, classes, count] = extents(boxes, scores).ok()?;
    product(&[batches, classes, count.max(1), count.min(most).max(1)])
}

/// A box by its corners: the least coordinates and the greatest.
#[derive(Copy, Clone, Debug)]
struct Corners {
    low: [f32; 2],
    high: [f32; 2],
}

impl Corners {
    fn new(numbers: [f32; 4], by_center: bool) -> Corners {
        let [a, b, c, d] = numbers;
        if by_center {
            let (width, height) = (c / 2.0, d / 2.0);
            return Corners { low: [b - height, a - width], high: [b + height, a + width] };
        }
        Corners { low: [a.smaller(c), b.smaller(d)], high: [a.larger(c), b.larger(d)] }
    }

    fn area(&self) -> f32 {
        (self.high[0] - self.low[0]) * (self.high[1] - self.low[1])
    }

    /// Returns true if the common part is a larger part of the union than `most`.
    fn overlaps(&self, other: &Corners, most: f32) -> bool {
        let common = Corners {
            low: [self.low[0].larger(other.low[0]), self.low[1].larger(other.low[1])],
            high: [self.high[0].smaller(other.high[0]), self.high[1].smaller(other.high[1])],
        };
        let is_empty = (0..2).any(|i| common.high[i] <= common.low[i]);
        let (area, areas) = (common.area(), [self.area(), other.area()]);
        let union = areas[0] + areas[1] - area;
        let has_area = area > 0.0 && areas[0] > 0.0 && areas[1] > 0.0 && union > 0.0;
        !is_empty && has_area && area / union > most
    }
}

/// Returns a row of batch, class and box for each selected box, by falling scores in a class.
pub(crate) fn non_max_suppression(boxes: &Literal, scores: &Literal, how: Selection) -> Result<Literal, Failure> {
    for operand in [boxes, scores] {
        if operand.dtype() != DType::Float32 {
            return Err(Failure::ElementType(operand.dtype()));
        }
    }
    let [batches, classes, count] = extents(boxes, scores)?;
    check_steps(&[boxes, scores], &[], steps(boxes, scores, how.most))?;
    let (boxes, scores) = (View::<f32>::new(boxes), View::<f32>::new(scores));
    let mut rows: Vec<i64> = Vec::new();
    if how.most == 0 || count == 0 {
        return Literal::from_elements::<i64>(&[0, 3], &[]).map_err(|_| Failure::TooLarge);
    }
    for batch in 0..batches {
        let corners = |i: usize| {
            let start = (batch * count + i) * 4;
            Corners::new(std::array::from_fn(|k| boxes.get(start + k)), how.center_point_box)
        };
        for class in 0..classes {
            let score = |i: usize| scores.get((batch * classes + class) * count + i);
            let is_candidate = |&i: &usize| how.score.is_none_or(|least| score(i) > least);
            let mut candidates: Vec<usize> = (0..count).filter(is_candidate).collect();
            candidates.sort_by_key(|&i| std::cmp::Reverse(score(i).order_key()));
            let mut selected: Vec<Corners> = Vec::new();
            for i in candidates {
                if selected.len() >= how.most {
                    break;
                }
                let own = corners(i);
                if !selected.iter().any(|s| own.overlaps(s, how.overlap)) {
                    selected.push(own);
                    rows.extend([batch as i64, class as i64, i as i64]);
                }
            }
        }
    }
    Literal::from_elements(&[rows.len() / 3, 3], &rows).map_err(|_| Failure::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_that_overlap_are_suppressed_and_ties_keep_their_order() {
        let corners = [0f32, 0., 1., 1., 1., 1., 0., 0., 2., 2., 3., 3.];
        let boxes = Literal::from_elements(&[1, 3, 4], &corners).unwrap();
        let scores = Literal::from_elements(&[1, 1, 3], &[0.5f32, 0.5, 0.9]).unwrap();
        let how = Selection { center_point_box: false, most: 3, overlap: 0.5, score: None };
        let found = non_max_suppression(&boxes, &scores, how).unwrap();
        assert_eq!(found, Literal::from_elements(&[2, 3], &[0i64, 0, 2, 0, 0, 0]).unwrap());
        let most = Literal::scalar(-1i64);
        assert_eq!(Selection::new(false, Some(&most), [None; 2]).unwrap().most, 0);
        let none = non_max_suppression(&boxes, &scores, Selection { most: 0, ..how }).unwrap();
        assert_eq!(none.shape(), &[0, 3]);
    }
}
