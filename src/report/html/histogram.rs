//! The latencies for each limit: a table, and a histogram for each.
//!
//! The latencies are those that the checks use, in classes that are at most 1/64 wide; the bins
//! here are wider, 1, 2 and 5 of each power of ten.

use std::time::Duration;

use maud::{Markup, html};

use crate::outcome::{RunReport, Spread, Worst};
use crate::report::printable::{cut, span};

const BINS: usize = 24;
const WIDTH: usize = 26;
const HEIGHT: usize = 60;

/// The number of latencies in a class, bounded by that of the bin before.
struct Bin {
    until: Duration,
    count: usize,
}

pub(super) fn latencies(report: &RunReport) -> Markup {
    html! {
        p {
            "What the checks measured. A bar holds the times up to the one below its right end; the "
            "dashed line is the limit."
        }
        div .scroll tabindex="0" role="region" aria-label="Latencies" {
            table {
                thead {
                    tr {
                        th scope="col" { "What" }
                        th scope="col" { "How often it took how long" }
                        @for name in ["measured", "p50", "p99", "worst", "limit"] {
                            th scope="col" .number { (name) }
                        }
                        th scope="col" { "worst in" }
                    }
                }
                tbody {
                    @for worst in &report.latencies { (row(worst)) }
                }
            }
        }
    }
}

fn row(worst: &Worst) -> Markup {
    let time = |percent| worst.percentile(percent).map_or_else(String::new, span);
    html! {
        tr {
            th scope="row" { (worst.latency.limit) }
            td { (histogram(&worst.spread, worst.latency.bound)) }
            td .number { (worst.spread.count()) }
            td .number { (time(50)) }
            td .number { (time(99)) }
            td .number { (span(worst.latency.took)) }
            td .number { (span(worst.latency.bound)) }
            td { (cut(&worst.case, 40)) }
        }
    }
}

fn histogram(spread: &Spread, bound: Duration) -> Markup {
    let bins = bins(spread, bound);
    let most = bins
        .iter()
        .map(|bin| bin.count)
        .max()
        .unwrap_or_default()
        .max(1);
    let limit = bins.iter().position(|bin| bin.until >= bound);
    let (width, height) = (bins.len() * WIDTH + 8, HEIGHT + 34);
    let view = format!("0 0 {width} {height}");
    let words = bins.iter().filter(|bin| bin.count > 0);
    let words: Vec<String> = words
        .map(|bin| format!("{} up to {}", bin.count, short(bin.until)))
        .collect();
    html! {
        svg .histogram viewBox=(view) width=(width) height=(height) role="img"
            aria-label={ "Histogram: " (words.join(", ")) } {
            @for (nth, bin) in bins.iter().enumerate() {
                @let left = 2 + nth * WIDTH;
                @let high = (bin.count * HEIGHT).div_ceil(most);
                @if bin.count > 0 {
                    rect .bar x=(left) y=(14 + HEIGHT - high) width=(WIDTH - 3) height=(high) {}
                    text x=(left + WIDTH / 2 - 1) y=(11 + HEIGHT - high) { (bin.count) }
                }
                @if is_labelled(nth, &bins) {
                    text x=(left + WIDTH - 3) y=(HEIGHT + 28) { (short(bin.until)) }
                }
            }
            line .base x1="0" x2=(width) y1=(14 + HEIGHT) y2=(14 + HEIGHT) {}
            @if let Some(limit) = limit {
                @let right = 1 + (limit + 1) * WIDTH;
                line .limit x1=(right) x2=(right) y1="4" y2=(14 + HEIGHT) {}
            }
        }
    }
}

/// Whether a bin is labelled: every third, starting at a power of ten.
fn is_labelled(nth: usize, bins: &[Bin]) -> bool {
    let micros = bins[nth].until.as_micros();
    let mut power = 1;
    while power < micros {
        power *= 10;
    }
    power == micros
}

/// A round duration in few letters.
fn short(time: Duration) -> String {
    let micros = time.as_micros();
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..1_000_000 => format!("{} ms", micros / 1_000),
        _ => format!("{} s", micros / 1_000_000),
    }
}

/// The latencies in bins, up to the limit at least; at most [`BINS`], the first of which may
/// include all shorter ones.
fn bins(spread: &Spread, bound: Duration) -> Vec<Bin> {
    let longest = spread
        .classes()
        .last()
        .map_or(bound, |(time, _)| time.max(bound));
    let mut bins: Vec<Bin> = Vec::new();
    let mut classes = spread.classes().peekable();
    for until in edges() {
        let mut count = 0;
        while let Some((_, times)) = classes.next_if(|(time, _)| *time <= until) {
            count += times;
        }
        if count > 0 || !bins.is_empty() {
            bins.push(Bin { until, count });
        }
        if until >= longest {
            break;
        }
    }
    let surplus = bins.len().saturating_sub(BINS);
    let shorter: usize = bins.drain(..surplus).map(|bin| bin.count).sum();
    if let Some(first) = bins.first_mut() {
        first.count += shorter;
    }
    bins
}

/// 1, 2 and 5 microseconds and so on, up to a day and more.
fn edges() -> impl Iterator<Item = Duration> {
    let powers = (0..12).map(|power| 10_u64.pow(power));
    let edges = powers.flat_map(|power| [power, 2 * power, 5 * power]);
    edges.map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::bins;
    use crate::outcome::Spread;

    #[track_caller]
    fn check(micros: &[u64], bound_us: u64, expected: &[(u64, usize)]) {
        let mut spread = Spread::default();
        let times = micros.iter().copied().map(Duration::from_micros);
        times.for_each(|time| spread.add(time));
        let bins = bins(&spread, Duration::from_micros(bound_us));
        let found: Vec<_> = bins
            .iter()
            .map(|bin| (bin.until.as_micros(), bin.count))
            .collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|(us, n)| (u128::from(*us), *n))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn times_stand_in_their_bins_up_to_the_limit() {
        check(&[3, 4, 18], 40, &[(5, 2), (10, 0), (20, 1), (50, 0)]);
        check(&[30], 10, &[(50, 1)]);
        check(&[], 10, &[]);
    }

    #[test]
    fn no_time_is_lost_where_there_are_too_many_bins() {
        let mut spread = Spread::default();
        for micros in [1, 1_000, 100_000_000_000] {
            spread.add(Duration::from_micros(micros));
        }
        let bins = bins(&spread, Duration::from_secs(1));
        assert_eq!(bins.len(), super::BINS);
        assert_eq!(bins.iter().map(|bin| bin.count).sum::<usize>(), 3);
    }
}
