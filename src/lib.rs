//! anfora
