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
