//! The IR: text, verifier, equality and hashing, compaction, overlays, effects.

mod alpha;
mod compact;
mod overlay;
mod parser;
mod printer;
mod purity;
mod registering;
mod render;
mod tiny;
mod verify;
