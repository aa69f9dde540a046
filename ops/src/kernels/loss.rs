//! Losses: reductions of the log-probabilities of the target classes.

use anfora_ir::{Literal, Shape, element_count};

use super::arithmetic::{dispatch, same_dtype};
use super::normalise::{Softmax, softmax};
use super::number::{Calc, FloatNumber};
use super::view::{Output, View};
use super::{Failure, shape_text};

/// The reduction of the losses of the samples.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Reduction {
    /// No reduction: each loss is an element of the result.
    None,
    /// The sum of the losses, divided by the sum of their weights.
    Mean,
    /// The sum of the losses.
    Sum,
}

impl Reduction {
    /// Returns the reduction with the name `name`.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn named(name: &str) -> Result<Reduction, Failure> {
        match name {
            "none" => Ok(Reduction::None),
            "mean" => Ok(Reduction::Mean),
            "sum" => Ok(Reduction::Sum),
            other => Err(Failure::Mismatch(format!(
                "attribute `reduction` is \"{other}\", but \"none\", \"mean\" or \"sum\" is expected"
            ))),
        }
    }
}

/// The parameters of a loss.
#[derive(Copy, Clone)]
pub(crate) struct Loss<'a> {
    /// A weight for each class.
    pub(crate) weights: Option<&'a Literal>,
    pub(crate) reduction: Reduction,
    /// Samples of this class do not count.
    pub(crate) ignored: Option<i64>,
}

/// Returns the losses of the log-softmax of the scores along the classes (axis 1), and the
/// log-softmax itself.
pub(crate) fn softmax_cross_entropy(
    scores: &Literal,
    targets: &Literal,
    loss: Loss<'_>,
) -> Result<[Literal; 2], Failure> {
    if scores.rank() < 2 {
        return Err(Failure::Mismatch("operand 0 has no axis of classes".into()));
    }
    let log_probabilities = softmax(Softmax::Log, scores, 1..2)?;
    Ok([nll_loss(&log_probabilities, targets, loss)?, log_probabilities])
}

/// Returns `-x[n, targets[n, …], …]` times the weight of the class, for all samples, and reduces
/// it. `x` is `(n, classes, …)`, and the targets are `(n, …)`.
pub(crate) fn nll_loss(x: &Literal, targets: &Literal, loss: Loss<'_>) -> Result<Literal, Failure> {
    let dtype = same_dtype(&[&[x][..], loss.weights.as_slice()].concat())?;
    let [batch, classes, behind @ ..] = x.shape() else {
        return Err(Failure::Mismatch("operand 0 has no axis of classes".into()));
    };
    let samples: Shape = [batch].into_iter().chain(behind).copied().collect();
    if targets.shape() != samples.as_slice() {
        let (found, wanted) = (shape_text(targets.shape()), shape_text(&samples));
        return Err(Failure::Mismatch(format!("targets of shape {found}, not {wanted}")));
    }
    if loss.weights.is_some_and(|w| w.shape() != [*classes]) {
        return Err(Failure::Mismatch(format!("the weights are not one for each of {classes} classes")));
    }
    dispatch!(float dtype, T => nll_loss_of::<T>(x, targets, *classes, &samples, loss))
}

/// The sums of the losses of samples and of their weights.
struct Total<C> {
    losses: C,
    weights: C,
    /// The number of samples that count.
    count: u128,
}

fn nll_loss_of<T: FloatNumber>(
    x: &Literal,
    targets: &Literal,
    classes: usize,
    samples: &[usize],
    loss: Loss<'_>,
) -> Result<Literal, Failure> {
    let (view, weights) = (View::<T>::new(x), loss.weights.map(View::<T>::new));
    // Returns the class of a target; `None` if it is ignored.
    let class = |target: i64| match usize::try_from(target) {
        _ if Some(target) == loss.ignored => Ok(None),
        Ok(class) if class < classes => Ok(Some(class)),
        _ => Err(Failure::Index { index: target, extent: classes }),
    };
    // Returns the loss and the weight of a sample from the element `e` of its class.
    let weighted = |e: T, class: usize| {
        let weight = weights.map(|w| w.get(class).widen());
        let negative = e.widen().neg();
        (weight.map_or(negative, |w| negative.mul(w)), weight.unwrap_or(T::Calc::ONE))
    };
    let reduced = |total: Total<T::Calc>| {
        let divisor = if weights.is_some() { total.weights } else { T::Calc::from_count(total.count) };
        let value = if loss.reduction == Reduction::Mean { total.losses.div(divisor) } else { total.losses };
        Literal::scalar(T::narrow(value))
    };
    // Count the samples, and return early if there are none.
    let count = samples.iter().try_fold(1u128, |n, &e| if e == 0 { Some(0) } else { n.checked_mul(e as u128) });
    let count = if samples.contains(&0) { 0 } else { count.ok_or(Failure::TooLong)? };
    if count == 0 {
        return Ok(match loss.reduction {
            Reduction::None => Output::<T>::new(samples)?.finish()?,
            _ => reduced(Total { losses: T::Calc::ZERO, weights: T::Calc::ZERO, count: 0 }),
        });
    }
    // Equal samples are added up at once.
    let one_target = targets.as_splat().map(|_| first_target(targets)).transpose()?;
    if let Some(target) = one_target {
        let class = class(target)?;
        let all_equal = match (class, view.splat) {
            (None, _) => Some((T::Calc::ZERO, T::Calc::ZERO, 0)),
            (Some(class), Some(e)) => Some(weighted(e, class)).map(|(loss, weight)| (loss, weight, count)),
            (Some(_), None) => None,
        };
        if let Some((one, weight, counted)) = all_equal {
            return Ok(match loss.reduction {
                Reduction::None => Literal::splat(samples, T::narrow(one)),
                _ => {
                    reduced(Total { losses: one.repeat_add(count), weights: weight.repeat_add(count), count: counted })
                }
            });
        }
    }
    // Some operand is dense and has at least as many elements as there are samples.
    let listed = match one_target {
        Some(_) => None,
        None => Some(targets.to_i64s().ok_or_else(|| Failure::Mismatch("a target is not a class".into()))?),
    };
    let samples_count = element_count(samples).ok_or(Failure::TooLarge)?;
    let inner: usize = samples[1..].iter().product();
    let mut out = match loss.reduction {
        Reduction::None => Some(Output::<T>::new(samples)?),
        _ => None,
    };
    // Add up the samples, or list their losses.
    let mut total = Total { losses: T::Calc::ZERO, weights: T::Calc::ZERO, count: 0 };
    for sample in 0..samples_count {
        let target = listed.as_ref().map_or(one_target.unwrap_or_default(), |l| l[sample]);
        let (value, weight) = match class(target)? {
            None => (T::Calc::ZERO, T::Calc::ZERO),
            Some(class) => {
                total.count += 1;
                weighted(view.get((sample / inner * classes + class) * inner + sample % inner), class)
            }
        };
        match &mut out {
            Some(out) => out.raw()[sample] = T::narrow(value).store(),
            None => {
                total.losses = total.losses.add(value);
                total.weights = total.weights.add(weight);
            }
        }
    }
    match out {
        Some(out) => out.finish(),
        None => Ok(reduced(total)),
    }
}

/// Returns the class that all targets name.
fn first_target(targets: &Literal) -> Result<i64, Failure> {
    let one = Literal::splat_bytes(targets.dtype(), &[1], targets.as_splat().unwrap_or_default());
    match one.to_i64s().as_deref() {
        Some(&[target]) => Ok(target),
        _ => Err(Failure::Mismatch("a target is not a class".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_values::f64s;
    use super::*;

    fn of(reduction: Reduction) -> Loss<'static> {
        Loss { weights: None, reduction, ignored: None }
    }

    #[test]
    fn losses_by_class() {
        let x = f64s(&[2, 3, 2], &[1., 2., 2., 2., 3., 2., 0., 1., 2., 2., 1., 2.]);
        let targets = Literal::from_elements(&[2, 2], &[2i64, 1, 0, 2]).unwrap();
        assert_eq!(nll_loss(&x, &targets, of(Reduction::None)), Ok(f64s(&[2, 2], &[-3., -2., -0., -2.])));
        assert_eq!(nll_loss(&x, &targets, of(Reduction::Sum)), Ok(Literal::scalar(-7f64)));
        assert_eq!(nll_loss(&x, &targets, of(Reduction::Mean)), Ok(Literal::scalar(-1.75f64)));
        let weights = f64s(&[3], &[0.25, 0.5, 1.]);
        let weighted =
            |reduction, ignored| nll_loss(&x, &targets, Loss { weights: Some(&weights), reduction, ignored });
        assert_eq!(weighted(Reduction::Sum, None), Ok(Literal::scalar(-6f64)));
        assert_eq!(weighted(Reduction::Mean, None), Ok(Literal::scalar(-6f64 / 2.75)));
        assert_eq!(weighted(Reduction::Mean, Some(2)), Ok(Literal::scalar(-1f64 / 0.75)));
        let ignoring = |targets: &[i64], ignored| {
            let targets = Literal::from_elements(&[2, 2], targets).unwrap();
            nll_loss(&x, &targets, Loss { weights: None, reduction: Reduction::Mean, ignored })
        };
        assert_eq!(ignoring(&[2, -1, -1, 2], Some(-1)), Ok(Literal::scalar(-2.5f64)));
        assert_eq!(ignoring(&[2, -1, 0, 2], None), Err(Failure::Index { index: -1, extent: 3 }));
        assert_eq!(ignoring(&[2, 3, 0, 2], Some(-1)), Err(Failure::Index { index: 3, extent: 3 }));
        assert!(ignoring(&[5; 4], Some(5)).unwrap().as_scalar::<f64>().unwrap().is_nan());
    }

    #[test]
    fn equal_samples_are_not_counted_out() {
        let (n, behind) = (1 << 30, 1 << 20);
        let x = Literal::splat(&[n, 3, behind], -2f64);
        let targets = Literal::splat(&[n, behind], 1i32);
        assert_eq!(nll_loss(&x, &targets, of(Reduction::Mean)), Ok(Literal::scalar(2f64)));
        assert_eq!(nll_loss(&x, &targets, of(Reduction::None)), Ok(Literal::splat(&[n, behind], 2f64)));
        let none = f64s(&[0, 3], &[]);
        let no_targets = Literal::from_elements::<i64>(&[0], &[]).unwrap();
        assert_eq!(nll_loss(&none, &no_targets, of(Reduction::Sum)), Ok(Literal::scalar(0f64)));
        assert!(nll_loss(&x, &no_targets, of(Reduction::Sum)).is_err());
    }

    #[test]
    fn cross_entropy_is_of_the_log_softmax() {
        let x = f64s(&[1, 2], &[0., 3f64.ln()]);
        let [loss, logs] = softmax_cross_entropy(&x, &Literal::splat(&[1], 0i64), of(Reduction::Mean)).unwrap();
        assert!((loss.as_scalar::<f64>().unwrap() - 4f64.ln()).abs() < 1e-12);
        assert_eq!(logs.shape(), &[1, 2]);
        assert!(softmax_cross_entropy(&Literal::scalar(1f64), &Literal::scalar(0i64), of(Reduction::Mean)).is_err());
    }
}
