//! "Did you mean …?"

/// The candidate nearest to a misspelt name, if one is near enough to be meant: at most a third of its letters differ. One that goes on where the name ends
/// (`phase2.1` for `phase2`) is nearer than any in which a letter is another. Of equally near ones, the first.
///
/// Cost: linear in the text.
pub fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A name that long is no misspelling, and distance takes time in the product of the lengths.
    const LONGEST: usize = 64;
    let wanted: Vec<char> = name.chars().take(LONGEST + 1).collect();
    if wanted.len() > LONGEST {
        return None;
    }
    // Whether it does not go on where the name ends, and the distance.
    let mut best: Option<((bool, usize), &str)> = None;
    for candidate in candidates {
        let d = distance(&wanted, candidate);
        let limit = wanted.len().max(candidate.chars().count()).div_ceil(3);
        let key = (!goes_on(&wanted, candidate), d);
        if d <= limit && best.is_none_or(|(b, _)| key < b) {
            best = Some((key, candidate));
        }
    }
    best.map(|(_, c)| c)
}

/// Whether the candidate begins with the name, and the next part of it with a new one: with no letter or digit.
fn goes_on(name: &[char], candidate: &str) -> bool {
    let mut rest = candidate.chars();
    let begins = name.iter().all(|c| rest.next().is_some_and(|r| r.eq_ignore_ascii_case(c)));
    begins && rest.next().is_some_and(|c| !c.is_alphanumeric())
}

/// Optimal string alignment distance, ignoring case: insertions, deletions, replacements and swaps of neighbours.
fn distance(a: &[char], b: &str) -> usize {
    let lower = |c: &char| c.to_ascii_lowercase();
    let b: Vec<char> = b.chars().take(128).collect();
    let mut rows = [vec![0; b.len() + 1], (0..=b.len()).collect::<Vec<usize>>(), vec![0; b.len() + 1]];
    for i in 1..=a.len() {
        let [before, previous, current] = &mut rows;
        current[0] = i;
        for j in 1..=b.len() {
            let cost = usize::from(lower(&a[i - 1]) != lower(&b[j - 1]));
            let mut d = (previous[j] + 1).min(current[j - 1] + 1).min(previous[j - 1] + cost);
            if i > 1 && j > 1 && lower(&a[i - 1]) == lower(&b[j - 2]) && lower(&a[i - 2]) == lower(&b[j - 1]) {
                d = d.min(before[j - 2] + 1);
            }
            current[j] = d;
        }
        rows.rotate_left(1);
    }
    rows[1][b.len()]
}

#[cfg(test)]
mod tests {
    use super::did_you_mean;

    #[test]
    fn the_nearest_is_suggested_and_nonsense_is_not() {
        let names = ["add", "subtract", "nn.conv2d", "FoldConstant"];
        assert_eq!(did_you_mean("substract", names), Some("subtract"));
        assert_eq!(did_you_mean("nn.con2vd", names), Some("nn.conv2d"));
        assert_eq!(did_you_mean("foldconstant", names), Some("FoldConstant"));
        assert_eq!(did_you_mean("zzzzzz", names), None);
        assert_eq!(did_you_mean("phase2", ["phase0", "phase1", "phase2.1", "phase2.2"]), Some("phase2.1"));
        assert_eq!(did_you_mean("phas", ["phase0", "phase2.1"]), Some("phase0"));
        assert_eq!(did_you_mean("nn", ["add", "nn.conv2d"]), None);
    }
}
