//! Tests of recordings.

mod reasons;
mod recording;
mod support;
