//! Matrix products and sums of products.

use anfora_ir::{AdjointRule, AdjointWriter, DecompositionPart as Part, DimId};

use super::{broadcast_like, summed_from};

pub(super) const RULES: &[(&str, AdjointRule)] = &[("matmul", matmul), ("einsum", einsum)];

/// `da = dy * b'` and `db = a' * dy`, where an operand of rank 1 is a row or a column.
fn matmul(a: &mut AdjointWriter<'_>) -> Option<()> {
    let ranks = [a.rank(0)?, a.rank(1)?];
    let (mut left, mut right, mut dy) = (a.operand(0)?, a.operand(1)?, a.adjoint()?);
    let expanded =
        |a: &mut AdjointWriter<'_>, x: Part, axis: i64| a.op_with("expand_dims", &[x], &[("axis", [axis].into())]);
    if ranks[1] == 1 {
        right = expanded(a, right, 1);
        dy = expanded(a, dy, -1);
    }
    if ranks[0] == 1 {
        left = expanded(a, left, 0);
        dy = expanded(a, dy, -2);
    }
    let batch: Vec<DimId> = {
        let result = a.result_tensor()?.shape.as_ref()?;
        let matrix = ranks.iter().filter(|&&rank| rank > 1).count();
        result[..result.len().checked_sub(matrix)?].to_vec()
    };
    let of_matrices = |shape: &[DimId]| shape[..shape.len().saturating_sub(2)].to_vec();
    let batches = [of_matrices(a.tensor(0)?.shape.as_ref()?), of_matrices(a.tensor(1)?.shape.as_ref()?)];
    if a.wants(0) {
        let other = transposed(a, right, ranks[1].max(2));
        let product = a.op("matmul", &[dy, other]);
        let dx = matrix_summed(a, 0, product, &batch, &batches[1])?;
        a.give(0, dx);
    }
    if a.wants(1) {
        let other = transposed(a, left, ranks[0].max(2));
        let product = a.op("matmul", &[other, dy]);
        let dx = matrix_summed(a, 1, product, &batch, &batches[0])?;
        a.give(1, dx);
    }
    Some(())
}

/// Returns a tensor of this rank with its last two axes exchanged.
fn transposed(a: &mut AdjointWriter<'_>, x: Part, rank: usize) -> Part {
    let mut axes: Vec<i64> = (0..rank as i64).collect();
    axes.swap(rank - 2, rank - 1);
    a.op_with("permute_dims", &[x], &[("axes", axes.into())])
}

/// Adds up an adjoint, which consists of matrices, to the shape of a factor. `batch` are the axes
/// before the matrices, and `other` those of the other factor.
fn matrix_summed(a: &mut AdjointWriter<'_>, i: usize, x: Part, batch: &[DimId], other: &[DimId]) -> Option<Part> {
    let own: Vec<DimId> = a.tensor(i)?.shape.as_ref()?.to_vec();
    if own.len() == 1 {
        // A row of the left factor, a column of the right one.
        let single = if i == 0 { batch.len() } else { batch.len() + 1 };
        let axes: Vec<i64> = (0..batch.len()).chain([single]).map(|axis| axis as i64).collect();
        return Some(a.op_with("sum", &[x], &[("axis", axes.into())]));
    }
    // The matrices have the extents of the factor, so only the axes before them are added up.
    summed_from(a, i, x, [&own[..own.len() - 2], batch], &[other])
}

/// The most factors of a sum of products that is differentiated: each adjoint has as many.
const MOST_FACTORS: usize = 64;

/// The sum of products of `dy` and the other factors. An axis that only the factor itself has is
/// repeated. Letters that stand for a diagonal, `...`, and axes that are broadcast are not written.
fn einsum(a: &mut AdjointWriter<'_>) -> Option<()> {
    let text: String = a.attrs().str("subscripts")?.chars().filter(|c| !c.is_whitespace()).collect();
    let (inputs, output) = match text.split_once("->") {
        Some((inputs, output)) => (inputs, output.to_owned()),
        None => (&*text, once_in_order(&text)),
    };
    let inputs: Vec<&str> = inputs.split(',').collect();
    if inputs.len() > MOST_FACTORS {
        return a.refuse("a product of more than 64 factors is not differentiated");
    }
    if inputs.len() != a.operand_count()
        || inputs.iter().any(|letters| !are_distinct(letters))
        || !are_distinct(&output)
    {
        return a.refuse("each axis must be a letter that occurs once in its operand, without `...`");
    }
    if !have_one_extent(a, &inputs) {
        return a.refuse("the axes of a letter must be known to have the same extent: state it with `match_cast`");
    }
    let dy = a.adjoint()?;
    for (i, letters) in inputs.iter().enumerate().filter(|&(i, _)| a.wants(i)).collect::<Vec<_>>() {
        let (mut operands, mut factors) = (vec![dy], vec![output.as_str()]);
        for (other, letters) in inputs.iter().enumerate().filter(|&(other, _)| other != i) {
            operands.push(a.operand(other)?);
            factors.push(letters);
        }
        let is_found = |letter: char| factors.iter().any(|factor| factor.contains(letter));
        let found: String = letters.chars().filter(|&letter| is_found(letter)).collect();
        let missing: Vec<i64> = (0..).zip(letters.chars()).filter(|&(_, c)| !is_found(c)).map(|(at, _)| at).collect();
        let subscripts = format!("{}->{found}", factors.join(","));
        let mut dx = a.op_with("einsum", &operands, &[("subscripts", subscripts.into())]);
        if !missing.is_empty() {
            let expanded = a.op_with("expand_dims", &[dx], &[("axis", missing.into())]);
            dx = broadcast_like(a, i, expanded)?;
        }
        a.give(i, dx);
    }
    Some(())
}

/// Returns the letters that occur once, in the order of the alphabet: the axes of a result that is
/// not stated.
fn once_in_order(text: &str) -> String {
    let mut letters: Vec<char> = text.chars().filter(|c| c.is_ascii_alphabetic()).collect();
    letters.sort_unstable();
    letters.chunk_by(|a, b| a == b).filter(|same| same.len() == 1).map(|same| same[0]).collect()
}

/// Returns true if a text consists of letters that are all different.
fn are_distinct(letters: &str) -> bool {
    let mut seen = 0u64;
    letters.chars().all(|letter| {
        let bit = if letter.is_ascii_alphabetic() { 1u64 << (letter as u32 - 'A' as u32) } else { return false };
        let is_new = seen & bit == 0;
        seen |= bit;
        is_new
    })
}

/// Returns true if the axes of each letter have one extent, which is known to be the same.
fn have_one_extent(a: &AdjointWriter<'_>, inputs: &[&str]) -> bool {
    let mut extents: Vec<(char, DimId)> = Vec::new();
    for (i, letters) in inputs.iter().enumerate() {
        let Some(shape) = a.tensor(i).and_then(|tensor| tensor.shape.as_ref()) else { return false };
        if shape.len() != letters.len() {
            return false;
        }
        for (letter, &extent) in letters.chars().zip(shape) {
            match extents.iter().find(|(other, _)| *other == letter) {
                None => extents.push((letter, extent)),
                Some(&(_, other)) if other == extent && extent != a.cx().types.dims.unknown() => {}
                Some(_) => return false,
            }
        }
    }
    true
}
