//! How far into a value a rule looks.
//!
//! Of a fence's status most rules look at two or three fields; to make CEL values of all the others would take longer than
//! the rules do.

use std::collections::BTreeMap;

use kube::core::cel::cel::{IdedExpr, common::ast::Expr};

/// The part of a value that a rule looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// At everything.
    All,
    /// At these fields only, and at those only as far.
    Fields(BTreeMap<String, Look>),
}

impl Look {
    /// At nothing at all.
    pub(super) fn nothing() -> Self {
        Self::Fields(BTreeMap::new())
    }

    /// Looks along a path, and at its end at that much.
    pub(super) fn add(&mut self, path: &[&str], end: Look) {
        match (self, path) {
            (Self::All, _) => {}
            (look, []) => match end {
                Look::All => *look = Look::All,
                // Whether a field is there is told by the map that would hold it.
                Look::Fields(_) => {}
            },
            (Self::Fields(fields), [name, rest @ ..]) => {
                fields.entry((*name).to_owned()).or_insert_with(Look::nothing).add(rest, end);
            }
        }
    }

    /// What two rules look at together.
    pub(super) fn join(&mut self, other: &Self) {
        match (self, other) {
            (Self::All, _) => {}
            (look, Self::All) => *look = Self::All,
            (Self::Fields(own), Self::Fields(others)) => {
                for (name, other) in others {
                    own.entry(name.clone()).or_insert_with(Look::nothing).join(other);
                }
            }
        }
    }
}

/// Tells of each variable how far into it an expression looks.
pub(super) fn looks(expression: &IdedExpr, tell: &mut dyn FnMut(&str, &[&str], Look)) {
    let mut path = Vec::new();
    let mut end = Look::All;
    let mut at = expression;
    // A chain `self.a.b` is one look; with `has(self.a.b)` only the presence of `b` matters.
    while let Expr::Select(select) = &at.expr {
        if path.is_empty() && select.test {
            end = Look::nothing();
        }
        path.push(select.field.as_str());
        at = &select.operand;
    }
    path.reverse();
    match &at.expr {
        Expr::Ident(name) => tell(name, &path, end),
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).for_each(|part| looks(part, tell)),
        Expr::List(list) => list.elements.iter().for_each(|item| looks(item, tell)),
        Expr::Comprehension(turn) => {
            for part in [&turn.iter_range, &turn.accu_init, &turn.loop_cond, &turn.loop_step, &turn.result] {
                looks(part, tell);
            }
        }
        // Maps and structures built by a rule: rare, so the rule is taken to look at everything.
        Expr::Map(_) | Expr::Struct(_) => {
            tell("self", &[], Look::All);
            tell("oldSelf", &[], Look::All);
        }
        Expr::Select(_) | Expr::Literal(_) | Expr::Unspecified => {}
    }
}

#[cfg(test)]
mod tests {
    use kube::core::cel::cel::Program;

    use super::*;

    fn looks_at(rule: &str) -> Look {
        let mut look = Look::nothing();
        looks(Program::compile(rule).unwrap().expression(), &mut |name, path, end| {
            if name == "self" {
                look.add(path, end);
            }
        });
        look
    }

    #[test]
    fn a_rule_looks_no_further_than_it_says() {
        let field = |name: &str, look| Look::Fields([(name.to_owned(), look)].into());
        assert_eq!(looks_at("true"), Look::nothing());
        assert_eq!(looks_at("size(self) > 0"), Look::All);
        assert_eq!(looks_at("self.a == 1 && has(self.a.b)"), field("a", Look::All));
        assert_eq!(looks_at("has(self.a.b)"), field("a", field("b", Look::nothing())));
        assert_eq!(looks_at("self.a.all(x, x.c > 1)"), field("a", Look::All));
    }
}
