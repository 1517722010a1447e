//! What is said of input that cannot be read.
