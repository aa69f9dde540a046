//! Effects: the impure operators that a program runs.

use crate::value::{ValueId, Values};

/// An impure operator that ran.
#[derive(Clone, Debug)]
pub struct Effect {
    /// Name of the operator.
    pub op: String,
    /// The visible attributes of the operator as text: the format of a `print`, the shape and
    /// element type of a random draw.
    pub text: String,
    /// Its operands.
    pub operands: Vec<ValueId>,
}

impl Effect {
    /// Returns true if two effects are the same, bit for bit. `values` and `other_values` are the
    /// arenas of their operands.
    pub fn same(&self, values: &Values, other: &Effect, other_values: &Values) -> bool {
        self.op == other.op
            && self.text == other.text
            && self.operands.len() == other.operands.len()
            && self.operands.iter().zip(&other.operands).all(|(&a, &b)| values.same(a, other_values, b))
    }
}
