//! Programs and operators, interpreted.

mod deep;
mod drawing;
mod operators;
mod programs;
