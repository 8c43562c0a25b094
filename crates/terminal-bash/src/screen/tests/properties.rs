//! Positions, deltas, pages and bounds.
