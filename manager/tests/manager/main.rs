//! The pass manager, seen from outside.

mod analyses;
mod bisecting;
mod config;
mod contexts;
mod dependencies;
mod diagnostics;
mod instruments;
mod passes;
mod phases;
mod pipelines;
mod registering;
mod reports;
mod reproducers;
mod rollback;
mod support;
mod timing;
mod transactions;
