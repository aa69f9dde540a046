//! The standard operators: their values, types and what they refuse.

mod cases;
mod elementwise;
mod image;
mod known_elements;
mod loops;
mod nasty;
mod rows;
