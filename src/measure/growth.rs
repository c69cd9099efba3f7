//! How fast counts grow: a table of samples that `ci/soak` takes of a runtime and of the suite.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::statistics::{self, Point};

/// The smallest slope that is reported as growth, per hour.
const NEGLIGIBLE: f64 = 0.05;

/// The number of standard errors by which a slope must exceed zero to be reported as growth.
const ERRORS: f64 = 3.0;

/// The samples of one count.
#[derive(Default)]
struct Series {
    /// The order in which the counts occur first.
    place: usize,
    /// The samples in hours, by the life of the process that they are about.
    lives: BTreeMap<String, Vec<Point>>,
}

/// A row for each count: its samples, its medians at the beginning and at the end, and the slope
/// within each life of a process, per hour, with its standard error. The first tenth of the time is
/// left out.
///
/// # Errors
///
/// The first line that is not `SECONDS\tCOUNT\tLIFE\tNUMBER`, or that there is none.
pub fn growth(samples: &str) -> Result<String, String> {
    let mut counts = BTreeMap::<&str, Series>::new();
    let rows = samples.lines().enumerate().map(|(place, line)| {
        parse(line).ok_or_else(|| format!("line {}: `{line}` is no sample", place + 1))
    });
    let rows: Vec<_> = rows.collect::<Result<_, _>>()?;
    let Some(end) = rows.iter().map(|(at, ..)| *at).reduce(f64::max) else {
        return Err("no sample was taken".to_owned());
    };
    for (at, count, life, number) in rows.into_iter().filter(|(at, ..)| *at >= end / 10.0) {
        let place = counts.len();
        let series = counts.entry(count).or_insert_with(|| Series {
            place,
            ..Series::default()
        });
        let life = series.lives.entry(life.to_owned()).or_default();
        life.push((at / 3600.0, number));
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, series)| series.place);
    let mut text = format!(
        "{:<30}{:>8}{:>10}{:>10}{:>10}{:>12}{:>10}\n",
        "count", "samples", "first", "last", "most", "per hour", "error"
    );
    for (count, series) in &counts {
        text += &row(count, series);
    }
    Ok(text)
}

fn parse(line: &str) -> Option<(f64, &str, &str, f64)> {
    let columns: Vec<&str> = line.split('\t').collect();
    let [at, count, process, number] = columns[..] else {
        return None;
    };
    Some((at.parse().ok()?, count, process, number.parse().ok()?))
}

fn row(count: &str, series: &Series) -> String {
    let lives: Vec<&[Point]> = series.lives.values().map(Vec::as_slice).collect();
    let mut points: Vec<Point> = lives.iter().copied().flatten().copied().collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let numbers: Vec<f64> = points.into_iter().map(|(_, number)| number).collect();
    let tenth = (numbers.len() / 10).max(1);
    let first = median(&numbers[..tenth]);
    let last = median(&numbers[numbers.len() - tenth..]);
    let most = numbers.iter().copied().fold(f64::MIN, f64::max);
    let mut row = format!(
        "{count:<30}{:>8}{first:>10.0}{last:>10.0}{most:>10.0}",
        numbers.len()
    );
    let _ = match statistics::slope(&lives) {
        None => writeln!(row, "{:>12}{:>10}", "-", "-"),
        Some(fit) => {
            let grows = fit.slope > ERRORS * fit.error && fit.slope > NEGLIGIBLE;
            let grows = if grows { "  grows" } else { "" };
            writeln!(row, "{:>12.1}{:>10.1}{grows}", fit.slope, fit.error)
        }
    };
    row
}

fn median(numbers: &[f64]) -> f64 {
    let mut numbers = numbers.to_vec();
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    if numbers.len() % 2 == 1 {
        numbers[middle]
    } else {
        f64::midpoint(numbers[middle - 1], numbers[middle])
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn growth_is_measured_within_each_life() {
        let mut samples = String::new();
        for second in (0..3600_u32).step_by(60) {
            let (life, age) = (second / 1800, second % 1800);
            let noise = second / 60 % 3;
            let (threads, memory) = (10 + noise, 1000 + age);
            let _ = writeln!(samples, "{second}\tthreads\t{life}\t{threads}");
            let _ = writeln!(samples, "{second}\tmemory\t{life}\t{memory}");
        }
        samples += "3600\tmounts\t-\t5\n";
        expect![[r"
            count                          samples     first      last      most    per hour     error
            threads                             54        11        11        12         0.6       0.9
            memory                              54      1480      2620      2740      3600.0       0.0  grows
            mounts                               1         5         5         5           -         -
        "]]
        .assert_eq(&growth(&samples).unwrap());
    }

    #[test]
    fn lines_that_are_no_samples_are_refused() {
        for (samples, expect) in [
            ("", "no sample was taken"),
            ("1\ta\tb\t2\n1\ta\t3", "line 2: `1\ta\t3` is no sample"),
            ("1\ta\tb\tmany", "line 1: `1\ta\tb\tmany` is no sample"),
        ] {
            assert_eq!(growth(samples).unwrap_err(), expect);
        }
    }
}
