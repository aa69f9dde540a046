//! The pass manager, seen from outside.

mod config;
mod contexts;
mod dependencies;
mod instruments;
mod passes;
mod pipelines;
mod reports;
mod rollback;
mod support;
mod transactions;
