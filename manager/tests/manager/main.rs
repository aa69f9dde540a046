//! The pass manager, seen from outside.

mod bisecting;
mod config;
mod contexts;
mod dependencies;
mod diagnostics;
mod instruments;
mod passes;
mod pipelines;
mod reports;
mod reproducers;
mod rollback;
mod support;
mod timing;
mod transactions;
