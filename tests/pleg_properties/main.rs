//! Properties of the reference PLEGs for any order of inputs: enumerated for a world of one pod,
//! sampled for arbitrary input.

mod anything;
mod interleavings;
mod world;
