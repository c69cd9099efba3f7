//! Notices as text. Colours are always included; the output stream removes them if unwanted.

use std::fmt::Write;
use std::time::Duration;

use anstyle::{AnsiColor, Style};

use super::notice::{EventSeen, Notice, Subject, Summary};
use super::stream::KUBELETS_GAVE_UP;
use crate::history::HostInstant;
use crate::oracle::{NO_MISSED_EVENT, PLEGS_AGREE};
use crate::report::{cut, printable, rfc3339, short_id, signed_span, span};

/// The maximum length of a text from a runtime, in characters.
const TEXT: usize = 80;

const DIM: Style = Style::new().dimmed();
const ALARM: Style = AnsiColor::Red.on_default().bold();
const NOTE: Style = AnsiColor::Yellow.on_default();

/// The notice as one or more lines, without the last line break.
pub(super) fn line(at: HostInstant, notice: &Notice) -> String {
    let at = rfc3339(at);
    match notice {
        Notice::Event(seen) => format!("{at} {}", event(seen)),
        Notice::Relist {
            subject,
            lifecycle,
            on_demand,
        } => {
            let of = describe(subject);
            let when = match on_demand {
                true => ", on demand",
                false => "",
            };
            format!("{DIM}{at} relist   {of}  generic: {lifecycle}{when}{DIM:#}")
        }
        Notice::Violation {
            rule,
            level,
            subject,
            expected,
            actual,
            known,
            ..
        } => {
            let word = match &**rule {
                NO_MISSED_EVENT => "MISSED",
                PLEGS_AGREE => "DISAGREE",
                _ => "BROKEN",
            };
            let (style, known) = match known {
                true => (NOTE, ", known of this runtime"),
                false => (ALARM, ""),
            };
            let level = level.to_uppercase();
            let [subject, expected, actual] =
                [subject, expected, actual].map(|text| cut(text, 3 * TEXT));
            format!(
                "{style}{at} {word:<8} {subject}: {rule}, a {level}{known}{style:#}\n\
                 \x20   expected  {expected}\n    actual    {actual}"
            )
        }
        Notice::MoreViolations { rule, count } => {
            format!("{ALARM}{at} BROKEN   {rule}: {count} times more{ALARM:#}")
        }
        Notice::Stream { detail, .. } => format!("{at} stream   {}", cut(detail, 4 * TEXT)),
        Notice::Summary(totals) => summary(totals),
    }
}

fn event(seen: &EventSeen) -> String {
    let mut line = format!("{:<8} {}", seen.kind, describe(&seen.subject));
    if let Some(state) = &seen.state {
        let _ = write!(line, "  {state}");
    }
    if let Some(code) = seen.exit_code {
        let _ = write!(line, " {code}");
    }
    if let Some(reason) = &seen.reason {
        let _ = write!(line, " {}", cut(reason, TEXT));
    }
    let lag = match seen.lag_ns {
        Some(lag) => format!("lag {}", signed_span(lag)),
        None => format!("{ALARM}created_at NOT set{ALARM:#}"),
    };
    let _ = write!(line, "  {lag}");
    if seen.queued {
        let _ = write!(
            line,
            " {NOTE}(created before the stream was requested){NOTE:#}"
        );
    }
    let _ = match seen.evented {
        "relist" => write!(line, "  evented: a hint to relist its pod"),
        "sampled" => Ok(()),
        "taken" if seen.lifecycle.is_empty() => write!(line, "  evented: cached"),
        "taken" => write!(line, "  evented: {}", seen.lifecycle.join(", ")),
        "refused" => write!(
            line,
            "  {NOTE}evented: refused, older than its cache{NOTE:#}"
        ),
        "unfollowed" => write!(line, "  {NOTE}not tracked: too many containers{NOTE:#}"),
        "ignored" => write!(
            line,
            "  {ALARM}evented: ignored, it has no sandbox status{ALARM:#}"
        ),
        _ => {
            let why = cut(seen.panic.as_deref().unwrap_or_default(), 2 * TEXT);
            write!(
                line,
                "  {ALARM}evented: a kubelet would panic: {why}{ALARM:#}"
            )
        }
    };
    line
}

/// `kube-system/dns  coredns  3f2a9c81d0e4b`; a sandbox has `-` for the container's name.
fn describe(subject: &Subject) -> String {
    let container = match &subject.container {
        None => "-".to_owned(),
        Some(name) if name.is_empty() => "?".to_owned(),
        Some(name) => cut(name, TEXT),
    };
    let pod = pod_name(&subject.namespace, &subject.pod, &subject.uid);
    format!("{pod}  {container}  {}", short_id(&subject.id))
}

fn pod_name(namespace: &str, pod: &str, uid: &str) -> String {
    if pod.is_empty() && namespace.is_empty() {
        return format!("(pod {})", printable(&cut(uid, TEXT)));
    }
    format!("{}/{}", cut(namespace, TEXT), cut(pod, TEXT))
}

fn summary(totals: &Summary) -> String {
    let watched = Duration::from_nanos(totals.watched_ns);
    let kinds: Vec<_> = totals
        .events
        .iter()
        .map(|(kind, count)| format!("{kind} {count}"))
        .collect();
    let all: u64 = totals.events.values().sum();
    let mut text = format!("watched for {}: {all} events", span(watched));
    if !kinds.is_empty() {
        let _ = write!(text, " ({})", kinds.join(", "));
    }
    if let (Some(median), Some(p95), Some(max)) =
        (totals.lag_median_ns, totals.lag_p95_ns, totals.lag_max_ns)
    {
        let [median, p95, max] = [median, p95, max].map(signed_span);
        let _ = write!(text, "\nlag: median {median}, p95 {p95}, max {max}");
    }
    if totals.queued > 0 {
        let _ = write!(
            text,
            "\n{} events were created before their stream was requested; the lag excludes them",
            totals.queued
        );
    }
    let style = |bad: u64| if bad > 0 { ALARM } else { Style::new() };
    for (count, what) in [
        (totals.missed, "missed events"),
        (totals.disagreements, "disagreements"),
        (totals.other_violations, "other violations"),
        (totals.panics, "events that would make a kubelet panic"),
    ] {
        let style = style(count);
        let _ = write!(text, "\n{style}{what}: {count}{style:#}");
    }
    let (outages, without) = (
        totals.outages,
        Duration::from_nanos(totals.without_stream_ns),
    );
    let _ = write!(
        text,
        "\noutages of the stream: {outages}, {} in all, in which no event is missed\nrelists: {}",
        span(without),
        totals.relists
    );
    if totals.pod_relists > 0 {
        let _ = write!(text, ", and {} of one pod on demand", totals.pod_relists);
    }
    if outages > 0 {
        let _ = write!(text, "\n{NOTE}{KUBELETS_GAVE_UP}{NOTE:#}");
    }
    text
}
