//! Points in time between bounds, in a partial order: whether all constraints can be satisfied.

use std::collections::VecDeque;

use crate::history::Seq;

/// The number of points between two successive entries of a history.
const BETWEEN: i64 = 1 << 32;
/// The bound of a point that may never occur.
const NEVER: i64 = i64::MAX / 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::oracle) struct Point(usize);

/// Points in time, each between two bounds.
#[derive(Clone, Debug, Default)]
pub(in crate::oracle) struct Order {
    from: Vec<i64>,
    until: Vec<i64>,
    /// For each point the later ones, with the minimum distance.
    later: Vec<Vec<(usize, i64)>>,
    earlier: Vec<Vec<(usize, i64)>>,
    /// The bounds narrowed since the last propagation.
    changed: VecDeque<(usize, Bound)>,
    /// The number of narrowings of each point during a propagation.
    narrowed: Vec<usize>,
    contradicted: bool,
}

#[derive(Clone, Copy, Debug)]
enum Bound {
    From,
    Until,
}

/// No times of the points satisfy their bounds and order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::oracle) struct Impossible;

impl Order {
    /// A point after an entry and before another; without the other, at any time after the first or
    /// never.
    pub(in crate::oracle) fn point(&mut self, after: Seq, before: Option<Seq>) -> Point {
        self.from.push(place(after) + 1);
        self.until
            .push(before.map_or(NEVER, |before| place(before) - 1));
        self.later.push(Vec::new());
        self.earlier.push(Vec::new());
        self.narrowed.push(0);
        let point = self.from.len() - 1;
        self.contradicted |= self.from[point] > self.until[point];
        Point(point)
    }

    /// A point that never occurs.
    pub(in crate::oracle) fn never(&mut self) -> Point {
        let point = self.point(Seq::default(), None);
        self.from[point.0] = NEVER;
        point
    }

    pub(in crate::oracle) fn after(&mut self, point: Point, entry: Seq) {
        self.raise(point.0, place(entry) + 1);
    }

    pub(in crate::oracle) fn before(&mut self, point: Point, entry: Seq) {
        self.lower(point.0, place(entry) - 1);
    }

    /// Requires that one point comes at another or after it.
    pub(in crate::oracle) fn not_before(&mut self, later: Point, earlier: Point) {
        self.follow(later, earlier, 0);
    }

    /// Requires that one point comes after another.
    pub(in crate::oracle) fn strictly_after(&mut self, later: Point, earlier: Point) {
        self.follow(later, earlier, 1);
    }

    /// Whether one point certainly comes at another or after it, by their bounds alone.
    pub(in crate::oracle) fn is_not_before(&self, later: Point, earlier: Point) -> bool {
        self.from[later.0] >= self.until[earlier.0]
    }

    /// Whether one point certainly comes after another, by their bounds alone.
    pub(in crate::oracle) fn is_after(&self, later: Point, earlier: Point) -> bool {
        self.from[later.0] > self.until[earlier.0]
    }

    /// Whether a point may come before an entry, by its bounds alone.
    pub(in crate::oracle) fn may_come_before(&self, point: Point, entry: Seq) -> bool {
        self.from[point.0] < place(entry)
    }

    /// The entry after which a point comes, by its bounds alone.
    pub(in crate::oracle) fn entry_before(&self, point: Point) -> Seq {
        entry(self.from[point.0] / BETWEEN)
    }

    /// The entry before which a point comes, by its bounds alone.
    pub(in crate::oracle) fn entry_after(&self, point: Point) -> Seq {
        entry(self.until[point.0] / BETWEEN + 1)
    }

    fn follow(&mut self, Point(later): Point, Point(earlier): Point, gap: i64) {
        if self.from[later] >= self.until[earlier] + gap {
            // It holds, and bounds are never widened.
            return;
        }
        self.later[earlier].push((later, gap));
        self.earlier[later].push((earlier, gap));
        self.raise(later, self.from[earlier] + gap);
        self.lower(earlier, self.until[later] - gap);
    }

    fn raise(&mut self, point: usize, from: i64) {
        if self.from[point] < from {
            self.from[point] = from;
            self.narrow(point, Bound::From);
        }
    }

    fn lower(&mut self, point: usize, until: i64) {
        if self.until[point] > until {
            self.until[point] = until;
            self.narrow(point, Bound::Until);
        }
    }

    fn narrow(&mut self, point: usize, bound: Bound) {
        self.contradicted |= self.from[point] > self.until[point];
        self.narrowed[point] += 1;
        self.changed.push_back((point, bound));
    }

    /// Narrows the bounds until they satisfy the order.
    pub(in crate::oracle) fn settle(&mut self) -> Result<(), Impossible> {
        // A point that is narrowed more often follows from itself.
        let most = 2 * self.from.len() + 2;
        self.narrowed.fill(0);
        while let Some((point, bound)) = self.changed.pop_front() {
            if self.contradicted || self.narrowed[point] > most {
                return Err(Impossible);
            }
            match bound {
                Bound::From => {
                    for nth in 0..self.later[point].len() {
                        let (later, gap) = self.later[point][nth];
                        self.raise(later, self.from[point] + gap);
                    }
                }
                Bound::Until => {
                    for nth in 0..self.earlier[point].len() {
                        let (earlier, gap) = self.earlier[point][nth];
                        self.lower(earlier, self.until[point] - gap);
                    }
                }
            }
        }
        if self.contradicted {
            Err(Impossible)
        } else {
            Ok(())
        }
    }
}

fn entry(nth: i64) -> Seq {
    Seq(u64::try_from(nth).unwrap_or_default())
}

/// The point of an entry.
fn place(entry: Seq) -> i64 {
    let nth = i64::try_from(entry.0).unwrap_or(NEVER);
    nth.saturating_mul(BETWEEN).min(NEVER - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between(order: &mut Order, after: u64, before: u64) -> Point {
        order.point(Seq(after), Some(Seq(before)))
    }

    #[test]
    fn points_between_the_same_entries_come_in_any_order_but_not_in_a_circle() {
        let mut order = Order::default();
        let points = [0; 3].map(|_| between(&mut order, 1, 2));
        order.strictly_after(points[1], points[0]);
        order.strictly_after(points[2], points[1]);
        assert_eq!(order.settle(), Ok(()));
        order.strictly_after(points[0], points[2]);
        assert_eq!(order.settle(), Err(Impossible));
    }

    #[test]
    fn points_that_are_not_before_each_other_are_the_same() {
        let mut order = Order::default();
        let points = [0; 2].map(|_| between(&mut order, 1, 2));
        order.not_before(points[0], points[1]);
        order.not_before(points[1], points[0]);
        assert_eq!(order.settle(), Ok(()));
    }

    #[test]
    fn bounds_contradict_an_order() {
        let mut order = Order::default();
        let early = between(&mut order, 1, 3);
        let late = between(&mut order, 2, 4);
        order.strictly_after(late, early);
        assert_eq!(order.settle(), Ok(()));
        assert!(!order.is_not_before(late, early));
        let mut other = order.clone();
        other.strictly_after(early, late);
        assert_eq!(other.settle(), Err(Impossible));
        assert!(!order.is_not_before(early, late));
    }

    #[test]
    fn bounds_may_tell_which_point_comes_first() {
        let mut order = Order::default();
        let early = between(&mut order, 1, 3);
        let late = between(&mut order, 2, 4);
        order.before(early, Seq(2));
        assert_eq!(order.settle(), Ok(()));
        assert!(order.is_not_before(late, early));
        assert!(order.may_come_before(early, Seq(2)) && !order.may_come_before(late, Seq(2)));
        order.after(early, Seq(2));
        assert_eq!(order.settle(), Err(Impossible));
    }

    #[test]
    fn a_bound_may_be_narrowed_any_number_of_times() {
        let mut order = Order::default();
        let point = order.point(Seq(0), None);
        (1..100).for_each(|entry| order.after(point, Seq(entry)));
        assert_eq!(order.settle(), Ok(()));
    }

    #[test]
    fn what_never_comes_is_after_everything() {
        let mut order = Order::default();
        let never = order.never();
        let point = between(&mut order, 1, 2);
        order.strictly_after(never, point);
        assert_eq!(order.settle(), Ok(()));
        order.strictly_after(point, never);
        assert_eq!(order.settle(), Err(Impossible));
    }
}
