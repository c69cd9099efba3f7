//! The machine by itself: what comes of calls and time.
