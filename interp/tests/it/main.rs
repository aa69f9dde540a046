//! Programs and operators, interpreted.

mod externals;
mod deep;
mod drawing;
mod operators;
mod programs;
mod values;
