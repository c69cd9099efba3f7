//! Notices as lines for people. Colours are always in them; the stream that they are written to
//! takes them out where they are not wanted.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

use anstyle::{AnsiColor, Style};

use super::notice::{EventSeen, Notice, Subject, Summary, View};
use crate::history::HostInstant;
use crate::report::{cut, printable, rfc3339, short_id, signed_span, span};

/// Characters kept of a text that a runtime chose.
const TEXT: usize = 80;

/// What nothing is wrong with, and nobody asked for.
const ASIDE: Style = Style::new().dimmed();
/// What is wrong.
const ALARM: Style = AnsiColor::Red.on_default().bold();
/// What was wrong, or may be.
const NOTE: Style = AnsiColor::Yellow.on_default();

/// The notice as one line, or a few, without the last line break.
pub(super) fn line(at: HostInstant, notice: &Notice) -> String {
    let at = rfc3339(at);
    match notice {
        Notice::Event(seen) => format!("{at} {}", event(seen)),
        Notice::Relist { subject, lifecycle } => {
            let of = of(subject);
            format!("{ASIDE}{at} relist   {of}  generic: {lifecycle}{ASIDE:#}")
        }
        Notice::Missed {
            subject,
            kind,
            listed,
            waited_ns,
        } => {
            let (of, waited) = (of(subject), span(Duration::from_nanos(*waited_ns)));
            format!(
                "{ALARM}{at} MISSED   {of}  no {kind} within {waited}, but the relist shows it \
                 {listed}{ALARM:#}"
            )
        }
        Notice::Disagreement {
            namespace,
            pod,
            uid,
            generic,
            evented,
            outage,
        } => {
            let pod = pod_name(namespace, pod, uid);
            let both = side_by_side(generic, evented);
            let (style, why) = match outage {
                true => (NOTE, ", for there was no event stream"),
                false => (ALARM, ""),
            };
            format!("{style}{at} DISAGREE {pod}: a kubelet's caches differ{why}{style:#}{both}")
        }
        Notice::Agreement {
            namespace,
            pod,
            uid,
        } => {
            let pod = pod_name(namespace, pod, uid);
            format!("{NOTE}{at} AGREE    {pod}: a kubelet's caches are the same again{NOTE:#}")
        }
        Notice::Stream { detail, .. } => format!("{at} stream   {}", cut(detail, 4 * TEXT)),
        Notice::Summary(told) => summary(told),
    }
}

fn event(seen: &EventSeen) -> String {
    let mut line = format!("{:<8} {}", seen.kind, of(&seen.subject));
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
            " {NOTE}(made before the stream was asked for){NOTE:#}"
        );
    }
    let _ = match seen.evented {
        "taken" if seen.lifecycle.is_empty() => write!(line, "  evented: cached"),
        "taken" => write!(line, "  evented: {}", seen.lifecycle.join(", ")),
        "refused" => write!(
            line,
            "  {NOTE}evented: refused, older than its cache{NOTE:#}"
        ),
        "unfollowed" => write!(line, "  {NOTE}not followed: there are too many{NOTE:#}"),
        "ignored" => write!(
            line,
            "  {ALARM}evented: ignored, for no sandbox is told{ALARM:#}"
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
fn of(subject: &Subject) -> String {
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

/// A line for each id that either of the two has, the differing ones marked.
fn side_by_side(generic: &View, evented: &View) -> String {
    let ids = generic.iter().chain(evented).flat_map(|view| view.keys());
    let ids: BTreeSet<&String> = ids.collect();
    let state = |view: &View, id: &String| {
        let Some(viewed) = view.as_ref().and_then(|view| view.get(id)) else {
            return "nothing".to_owned();
        };
        let exit = viewed
            .exit_code
            .map_or_else(String::new, |code| format!(" {code}"));
        format!("{}{exit}", viewed.state)
    };
    let mut lines = String::new();
    for id in ids {
        let (generic, evented) = (state(generic, id), state(evented, id));
        let mark = if generic == evented { ' ' } else { '>' };
        let short = short_id(id);
        let _ = write!(
            lines,
            "\n{mark}   {short}  by relists: {generic:<12}  by events: {evented}"
        );
    }
    lines
}

fn summary(told: &Summary) -> String {
    let watched = Duration::from_nanos(told.watched_ns);
    let kinds = told.events.iter();
    let kinds: Vec<_> = kinds
        .map(|(kind, count)| format!("{kind} {count}"))
        .collect();
    let all: u64 = told.events.values().sum();
    let mut text = format!("watched for {}: {all} events", span(watched));
    if !kinds.is_empty() {
        let _ = write!(text, " ({})", kinds.join(", "));
    }
    if let (Some(median), Some(p95), Some(max)) =
        (told.lag_median_ns, told.lag_p95_ns, told.lag_max_ns)
    {
        let [median, p95, max] = [median, p95, max].map(signed_span);
        let _ = write!(text, "\nlag: median {median}, p95 {p95}, max {max}");
    }
    if told.queued > 0 {
        let _ = write!(
            text,
            "\n{} events were made before their stream was asked for; they count in no lag",
            told.queued
        );
    }
    let style = |bad: u64| if bad > 0 { ALARM } else { Style::new() };
    for (count, what) in [
        (told.missed, "missed events"),
        (told.disagreements, "disagreements"),
        (told.panics, "events that make a kubelet panic"),
    ] {
        let style = style(count);
        let _ = write!(text, "\n{style}{what}: {count}{style:#}");
    }
    let _ = write!(
        text,
        "\nreconnects: {} (transitions unheard meanwhile: {}, disagreements: {})\nrelists: {}",
        told.reconnects, told.unheard, told.disagreements_in_outages, told.relists
    );
    text
}
