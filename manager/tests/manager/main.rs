//! Tests of the public interface of the pass manager.

mod analyses;
mod bisecting;
mod config;
mod contexts;
mod dependencies;
mod diagnostics;
mod instruments;
mod memory;
mod noted;
mod parallel;
mod passes;
mod peer_cases;
mod phases;
mod pipelines;
mod printing;
mod registering;
mod repetition;
mod reports;
mod reproducers;
mod returning;
mod rollback;
mod seeing;
mod statistics;
mod support;
mod timing;
mod transactions;
