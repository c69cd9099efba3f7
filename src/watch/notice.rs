//! The output as data, where one [`Notice`] is one line, and its formats: text with colours, which
//! the output stream removes if unwanted, and JSON.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use super::stream::{KUBELETS_GAVE_UP, Throttle};
use crate::escape::printable_json;
use crate::history::HostInstant;
use crate::oracle::{NO_MISSED_EVENT, PLEGS_AGREE};
use crate::report::{cut, printable, rfc3339, short_id, short_ids, signed_span, span};
use crate::run::Output;
use crate::terminal;

/// A container or a sandbox, and its pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Subject {
    /// The pod's namespace; empty if unknown.
    pub namespace: String,
    /// The pod's name; empty if unknown.
    pub pod: String,
    /// The pod's UID; empty if unknown.
    pub uid: String,
    /// The container's name; none for a sandbox.
    pub container: Option<String>,
    /// The id of the container or the sandbox.
    pub id: String,
}

/// One line of output. The module's documentation describes every field.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Notice {
    Event(EventSeen),
    /// A lifecycle event that the Generic PLEG would have sent.
    Relist {
        #[serde(flatten)]
        subject: Subject,
        lifecycle: String,
        /// Whether it was a relist of this pod alone, after an inferred sync or a hint.
        on_demand: bool,
    },
    Violation {
        rule: String,
        guarantee: &'static str,
        level: String,
        finding: String,
        subject: String,
        expected: String,
        actual: String,
        known: bool,
    },
    /// Further violations of a rule, too many to be shown.
    MoreViolations {
        rule: String,
        count: u64,
        known: bool,
    },
    /// The state of the connection has changed.
    Stream {
        /// `opened`, `live`, `ended`, `overrun`, `relist-failed` or `relist-works`.
        what: &'static str,
        detail: String,
    },
    Summary(Summary),
}

/// An event, and the reaction of an Evented PLEG.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EventSeen {
    #[serde(flatten)]
    pub subject: Subject,
    /// `CREATED`, `STARTED`, `STOPPED`, `DELETED`.
    pub kind: String,
    /// The state of its subject, if it contains it.
    pub state: Option<String>,
    /// The exit code, if it has exited.
    pub exit_code: Option<i32>,
    /// The reason for the state, if there is one.
    pub reason: Option<String>,
    /// When the runtime created it; 0 if not set.
    pub created_at_ns: i64,
    pub arrived_ns: i64,
    /// The time from creation to arrival.
    pub lag_ns: Option<i64>,
    /// Whether it was created before this stream was requested.
    pub queued: bool,
    /// `taken`, `refused`, `ignored`, `panic` or `unfollowed`; or `relist` or `sampled`.
    pub evented: &'static str,
    /// The lifecycle events that the PLEG would have sent.
    pub lifecycle: Vec<String>,
    /// Why a kubelet would have panicked.
    pub panic: Option<String>,
}

/// The totals of a watch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// The duration of the watch.
    pub watched_ns: u64,
    pub events: BTreeMap<String, u64>,
    /// Events created before their stream was requested; they are excluded from the lag.
    pub queued: u64,
    pub lag_median_ns: Option<i64>,
    /// The 95th percentile of the lag.
    pub lag_p95_ns: Option<i64>,
    pub lag_max_ns: Option<i64>,
    /// Events that did not arrive although a relist shows the change.
    pub missed: u64,
    /// Differences between a kubelet's view by relists and its view by events.
    pub disagreements: u64,
    pub other_violations: u64,
    /// How often the stream ended.
    pub outages: u64,
    /// The time without a stream.
    pub without_stream_ns: u64,
    /// Events that would have made a kubelet panic.
    pub panics: u64,
    /// Streams after the first one.
    pub reconnects: u64,
    pub relists: u64,
    /// Relists of one pod, each after a sync that is inferred or after a hint.
    pub pod_relists: u64,
}

#[derive(Serialize)]
struct Timed<'a> {
    time: String,
    #[serde(flatten)]
    notice: &'a Notice,
}

/// The maximum length of a text from a runtime, in characters.
const TEXT: usize = 80;

/// The number of violations of one rule that are shown individually.
const SHOWN: u64 = 20;

/// The violations shown so far: of each rule the first ones, then their number; known ones apart,
/// so that they never hide a new one.
#[derive(Debug, Default)]
pub(super) struct Shown(BTreeMap<(String, bool), (u64, Throttle)>);

impl Shown {
    /// The notice for a new violation, unless it is left out.
    pub(super) fn next(&mut self, notice: Notice, now: HostInstant) -> Option<Notice> {
        let Notice::Violation { rule, known, .. } = &notice else {
            return Some(notice);
        };
        let (rule, known) = (rule.clone(), *known);
        let (count, throttle) = self.0.entry((rule.clone(), known)).or_default();
        *count += 1;
        match *count {
            ..=SHOWN => Some(notice),
            _ => throttle
                .happened(now)
                .map(|count| Notice::MoreViolations { rule, count, known }),
        }
    }
}

const DIM: Style = Style::new().dimmed();

const ALARM: Style = AnsiColor::Red.on_default().bold();

const NOTE: Style = AnsiColor::Yellow.on_default();

/// Prints a notice. Without an output, prints only those about the stream or a violation, to
/// standard error.
pub(super) fn show(output: Option<Output>, at: HostInstant, notice: &Notice) -> io::Result<()> {
    let is_violation = matches!(
        notice,
        Notice::Violation { .. } | Notice::MoreViolations { .. }
    );
    let is_of_stream = matches!(notice, Notice::Stream { .. });
    if is_of_stream || (output.is_none() && is_violation) {
        terminal::say_styled(&line(at, notice));
    }
    match output {
        None => Ok(()),
        Some(Output::Text) if is_of_stream => Ok(()),
        Some(Output::Text) => terminal::print_styled(&(line(at, notice) + "\n")),
        Some(Output::Json) => terminal::print(&(json(at, notice) + "\n")),
    }
}

pub(super) fn json(at: HostInstant, notice: &Notice) -> String {
    let time = rfc3339(at);
    let text = serde_json::to_string(&Timed { time, notice }).expect("all keys are strings");
    printable_json(&text).into_owned()
}

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
                true => ", on demand (inferred)",
                false => "",
            };
            format!("{DIM}{at} relist   {of}  generic: {lifecycle}{when}{DIM:#}")
        }
        Notice::Violation {
            rule,
            guarantee,
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
            let (style, known) = known_or_not(*known);
            let level = level.to_uppercase();
            let [subject, expected, actual] =
                [subject, expected, actual].map(|text| cut(&short_ids(text), 3 * TEXT));
            format!(
                "{style}{at} {word:<8} broke {guarantee}: {subject}: {rule}, a {level}{known}{style:#}\n\
                 \x20   expected  {expected}\n    actual    {actual}"
            )
        }
        Notice::MoreViolations { rule, count, known } => {
            let (style, known) = known_or_not(*known);
            format!("{style}{at} BROKEN   {rule}: {count} more{known}{style:#}")
        }
        Notice::Stream { detail, .. } => format!("{at} stream   {}", cut(detail, 4 * TEXT)),
        Notice::Summary(totals) => summary(totals),
    }
}

/// The style of a violation, and what follows it.
fn known_or_not(known: bool) -> (Style, &'static str) {
    if known {
        (NOTE, ", known of this runtime")
    } else {
        (ALARM, "")
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
        "unfollowed" => write!(line, "  {NOTE}not tracked: too many or too large{NOTE:#}"),
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
        "\noutages of the stream: {outages}; without a stream for {} in all, of which no event counts as \
         missed\nrelists: {}",
        span(without),
        totals.relists
    );
    if totals.pod_relists > 0 {
        let _ = write!(
            text,
            ", and {} of one pod on demand (inferred)",
            totals.pod_relists
        );
    }
    if outages > 0 {
        let _ = write!(text, "\n{NOTE}{KUBELETS_GAVE_UP}{NOTE:#}");
    }
    text
}

fn pod_name(namespace: &str, pod: &str, uid: &str) -> String {
    if pod.is_empty() && namespace.is_empty() {
        return format!("(pod {})", printable(&cut(uid, TEXT)));
    }
    format!("{}/{}", cut(namespace, TEXT), cut(pod, TEXT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_violations_hide_no_new_one() {
        let violation = |known| Notice::Violation {
            rule: "INV-11".to_owned(),
            guarantee: "Complete",
            level: "must".to_owned(),
            finding: "missing-stopped".to_owned(),
            subject: "app".to_owned(),
            expected: "STOPPED".to_owned(),
            actual: "no STOPPED".to_owned(),
            known,
        };
        let mut shown = Shown::default();
        for _ in 0..SHOWN {
            let first = shown.next(violation(true), HostInstant::default());
            assert_eq!(first, Some(violation(true)));
        }
        let more = shown.next(violation(true), HostInstant::default()).unwrap();
        let more = line(HostInstant::default(), &more);
        assert!(
            more.contains("INV-11: 1 more, known of this runtime"),
            "{more}"
        );
        let new = shown.next(violation(false), HostInstant::default());
        assert_eq!(new, Some(violation(false)));
    }
}
