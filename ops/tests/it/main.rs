//! The standard operators: their values, types and what they refuse.

mod elementwise;
mod image;
mod loops;
mod nasty;
mod rows;
