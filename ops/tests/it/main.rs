//! The standard operators: their values, their types and the calls that they reject.

mod cases;
mod elementwise;
mod image;
mod known_elements;
mod loops;
mod nasty;
mod orders;
mod rows;
