//! Where in an object we are, as `spec.levels[0].name`.
//!
//! A chain on the stack: it is written out only when something is wrong there.

use std::fmt;

/// A place in an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Root,
    Field(&'a str),
    Item(usize),
    Key(&'a str),
}

impl<'a> Path<'a> {
    pub(crate) fn root() -> Self {
        Self { parent: None, step: Step::Root }
    }

    /// A named field.
    pub(crate) fn field(&'a self, name: &'a str) -> Self {
        Self { parent: Some(self), step: Step::Field(name) }
    }

    /// An item of a list.
    pub(crate) fn item(&'a self, index: usize) -> Self {
        Self { parent: Some(self), step: Step::Item(index) }
    }

    /// A value of a map.
    pub(crate) fn key(&'a self, key: &'a str) -> Self {
        Self { parent: Some(self), step: Step::Key(key) }
    }
}

impl fmt::Display for Path<'_> {
    /// The root is empty; a message about it says `<nil>`, as upstream's do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(parent) = self.parent else { return Ok(()) };
        parent.fmt(f)?;
        match self.step {
            Step::Root => Ok(()),
            Step::Field(name) if parent.parent.is_none() => f.write_str(name),
            Step::Field(name) => write!(f, ".{name}"),
            Step::Item(index) => write!(f, "[{index}]"),
            Step::Key(key) => write!(f, "[{key}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reads_as_upstream_writes_it() {
        let root = Path::root();
        let spec = root.field("spec");
        let levels = spec.field("levels");
        let first = levels.item(0);
        let values = first.field("values");
        assert_eq!(values.key("n1").to_string(), "spec.levels[0].values[n1]");
        assert_eq!(root.to_string(), "");
    }
}
