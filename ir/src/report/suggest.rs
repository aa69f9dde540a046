//! Suggestions for misspelt names: "Did you mean …?"

/// Returns the candidate nearest to a misspelt name, if it is near enough: at most a third of its
/// letters differ. A candidate that continues where the name ends (`phase2.1` for `phase2`) is
/// nearer than any candidate with a different letter. Returns the first of equally near candidates.
///
/// Cost: linear in the text.
pub fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A longer name is no misspelling, and the distance takes time in the product of the lengths.
    const LONGEST: usize = 64;
    let length = name.chars().take(LONGEST + 1).count();
    if length > LONGEST {
        return None;
    }
    let wanted = name.to_ascii_lowercase();
    // The flag is false if the candidate continues where the name ends; the number is the distance.
    let mut best: Option<((bool, usize), &str)> = None;
    for candidate in candidates {
        let compared: String = candidate.chars().take(2 * LONGEST).map(|c| c.to_ascii_lowercase()).collect();
        let d = strsim::osa_distance(&wanted, &compared);
        let limit = length.max(candidate.chars().count()).div_ceil(3);
        let key = (!goes_on(&wanted, &compared), d);
        if d <= limit && best.is_none_or(|(b, _)| key < b) {
            best = Some((key, candidate));
        }
    }
    best.map(|(_, c)| c)
}

/// Returns true if the candidate begins with the name and continues with a new part: the next
/// character is no letter or digit.
fn goes_on(name: &str, candidate: &str) -> bool {
    candidate.strip_prefix(name).is_some_and(|rest| rest.starts_with(|c: char| !c.is_alphanumeric()))
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
