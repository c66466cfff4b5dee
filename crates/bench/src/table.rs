//! Table: what was measured, and where it stands against the goal.

use std::fmt;

/// One figure.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    what: String,
    value: f64,
    unit: &'static str,
    /// The most that it should be.
    goal: Option<f64>,
}

impl Figure {
    pub(crate) fn new(what: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self { what: what.into(), value, unit, goal: None }
    }

    /// The most that it should be.
    pub(crate) fn at_most(self, goal: f64) -> Self {
        Self { goal: Some(goal), ..self }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = format!("{} {}", rounded(self.value), self.unit);
        let goal = self.goal.map(|goal| format!("{} {}", rounded(goal), self.unit)).unwrap_or_default();
        let ratio = self.goal.map(|goal| format!("{:.2} of the goal", self.value / goal)).unwrap_or_default();
        let line = format!("{:<60} {value:>16}  {goal:>10}  {ratio}", self.what);
        f.write_str(line.trim_end())
    }
}

/// Three digits that matter.
fn rounded(value: f64) -> String {
    match value.abs() {
        small if small < 10.0 => format!("{value:.2}"),
        middle if middle < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// All figures.
#[derive(Default)]
pub(crate) struct Table(Vec<Figure>);

impl Table {
    /// Adds figures, and tells them at once: the next ones may take minutes.
    pub(crate) fn tell(&mut self, figures: Vec<Figure>) {
        for figure in figures {
            eprintln!("{figure}");
            self.0.push(figure);
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<60} {:>16}  {:>10}", "measure", "figure", "goal")?;
        self.0.iter().try_for_each(|figure| writeln!(f, "{figure}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_says_how_far_it_is_from_its_goal() {
        let line = Figure::new("memory", 144.0, "MiB").at_most(96.0).to_string();
        assert!(line.ends_with("144 MiB    96.0 MiB  1.50 of the goal"), "{line}");
    }

    #[test]
    fn a_figure_without_a_goal_claims_none() {
        let line = Figure::new("seeds", 1.234, "/min").to_string();
        assert!(line.ends_with("1.23 /min"), "{line}");
    }
}
