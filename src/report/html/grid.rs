//! All cases on one screen: a tile for each case in each profile that it concerns.

use maud::{Markup, html};

use super::super::printable::cut;
use super::cases::Tested;
use super::verdict::{class, level, sign};
use crate::outcome::{Level, Profile, Verdict};

/// The maximum length of an id or an area, in characters.
const NAME: usize = 40;

/// A row for each area, a column for each profile.
pub(super) fn grid(tested: &[Tested<'_>], profiles: &[Profile]) -> Markup {
    let mut areas: Vec<&str> = tested.iter().map(|it| it.worst.area()).collect();
    areas.sort_unstable();
    areas.dedup();
    html! {
        p .legend {
            "A tile is a case or an invariant: framed where it is a SHOULD, which fails nothing. "
            @for verdict in Verdict::ALL {
                span .key { span .tile .(class(verdict)) { (sign(verdict)) } " " (verdict) " " }
            }
            span .key { span .tile .advice { "✗" } " SHOULD broken" }
        }
        div .scroll tabindex="0" role="region" aria-label="Cases by profile" {
            table .grid {
                thead {
                    tr {
                        th scope="col" { "Area" }
                        @for profile in profiles { th scope="col" { (profile) } }
                    }
                }
                tbody {
                    @for area in areas {
                        tr {
                            th scope="row" { (cut(area, NAME)) }
                            @for profile in profiles {
                                td { (tiles(tested, area, *profile)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn tiles(tested: &[Tested<'_>], area: &str, profile: Profile) -> Markup {
    let within = tested.iter().filter(|it| it.worst.area() == area);
    html! {
        @for tested in within {
            @if let Some(binding) = tested.worst.levels.of(profile) {
                (tile(tested, profile, binding))
            }
        }
    }
}

fn tile(tested: &Tested<'_>, profile: Profile, binding: Level) -> Markup {
    let outcome = tested.worst;
    let (sign, class, words) = match outcome.should(profile) {
        // It fails nothing.
        Some(false) if outcome.verdict_for(profile) == Verdict::Pass || binding != Level::Must => {
            ("✗", "advice", "SHOULD broken".to_owned())
        }
        _ => {
            let verdict = outcome.verdict_for(profile);
            let words = format!("{verdict}, {}", level(binding));
            (sign(verdict), class(verdict), words)
        }
    };
    let name = format!("{} {words}", cut(&outcome.id, NAME));
    let target = if tested.has_details() { "#" } else { "#case-" };
    html! {
        a .tile .(class) .framed[binding != Level::Must] title=(name) aria-label=(name)
            href={ (target) (tested.anchor) } { (sign) }
    }
}
