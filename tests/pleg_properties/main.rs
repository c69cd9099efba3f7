//! What holds of the reference PLEGs whatever happens in whatever order: enumerated for a world of
//! one pod, sampled for arbitrary input.

mod anything;
mod interleavings;
mod world;
