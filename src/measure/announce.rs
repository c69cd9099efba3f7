//! The output before and during a measurement.

use crate::report::printable;
use crate::run::Surroundings;
use crate::terminal;

/// Prints the subject of the measurement, and the other users of the node.
pub(super) fn announce(surroundings: &Surroundings) {
    let (info, runtime) = (&surroundings.info, &surroundings.info.runtime);
    let how = if surroundings.simulated {
        ", in this process, in simulated time".to_owned()
    } else {
        format!(" at {}", info.endpoint)
    };
    let [name, version] = [&runtime.runtime_name, &runtime.runtime_version].map(|it| printable(it));
    terminal::say(&format!(
        "measuring {name} {version}{how}\nrun {}",
        info.run
    ));
    let foreign = surroundings.foreign_pods;
    if foreign > 0 {
        terminal::say(&format!(
            "this node has {foreign} other pods, which are left alone; the figures include \
             their activity"
        ));
    }
}

/// Shows the current measurement on a terminal.
pub(super) fn progress(doing: &str) {
    if terminal::has_status() {
        terminal::show_status(&[format!("measuring: {doing}")]);
    }
}
