//! How far into a value a rule looks.
//!
//! Of a fence's status most rules look at two or three fields, or at one field of each item of a list; to make CEL values
//! of all the others would take longer than the rules do.

use std::{
    collections::BTreeMap,
    hash::{Hash, Hasher},
};

use kube::core::cel::cel::{
    IdedExpr,
    common::ast::{ComprehensionExpr, Expr},
};
use serde_json::Value;

/// The part of a value that a rule looks at; of a list, the part of each item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Look {
    /// At everything.
    pub(super) all: bool,
    /// At how many items or keys there are, and at the keys.
    pub(super) count: bool,
    /// At these fields, as far as each of them says; at nothing in a field: whether it is there.
    pub(super) fields: BTreeMap<String, Look>,
}

static ALL: Look = Look { all: true, count: false, fields: BTreeMap::new() };
static COUNT: Look = Look { all: false, count: true, fields: BTreeMap::new() };
/// At nothing in it: only at whether it is there.
pub(super) static PRESENCE: Look = Look { all: false, count: false, fields: BTreeMap::new() };

impl Look {
    fn is_nothing(&self) -> bool {
        !self.all && !self.count && self.fields.is_empty()
    }

    /// Looks along a path, and at its end at that much.
    fn add(&mut self, path: &[&str], end: &Self) {
        match path {
            [] => self.join(end),
            [name, rest @ ..] => self.fields.entry((*name).to_owned()).or_default().add(rest, end),
        }
    }

    /// What two rules look at together.
    pub(super) fn join(&mut self, other: &Self) {
        self.all |= other.all;
        self.count |= other.count;
        for (name, other) in &other.fields {
            self.fields.entry(name.clone()).or_default().join(other);
        }
    }

    /// Writes down what one sees of a value, and nothing else of it.
    pub(super) fn note(&self, value: &Value, notes: &mut impl Hasher) {
        match value {
            _ if self.all => value.hash(notes),
            Value::Array(items) => {
                items.len().hash(notes);
                for item in items {
                    self.note(item, notes);
                }
            }
            Value::Object(fields) => {
                for (name, look) in &self.fields {
                    match fields.get(name) {
                        Some(field) => {
                            1_u8.hash(notes);
                            look.note(field, notes);
                        }
                        // A name with an escape in it is not the name of the field: rather note everything.
                        None if name.contains("__") => fields.hash(notes),
                        None => 0_u8.hash(notes),
                    }
                }
                if self.count {
                    for name in fields.keys() {
                        name.hash(notes);
                    }
                }
            }
            _ if self.is_nothing() => {}
            plain => plain.hash(notes),
        }
    }
}

/// What an expression looks at, of `self` and of `oldSelf`.
pub(super) fn looks(expression: &IdedExpr) -> (Look, Look) {
    let mut eyes = Eyes { at: Look::default(), back_at: Look::default(), items: Vec::new() };
    eyes.follow(expression);
    (eyes.at, eyes.back_at)
}

/// A walk over an expression.
struct Eyes<'a> {
    at: Look,
    back_at: Look,
    /// Variables of the loops that we are in, each with the list whose items it stands for, if that is known.
    items: Vec<(&'a str, Option<Chain<'a>>)>,
}

/// `self.a.b`, also through a variable that stands for an item.
#[derive(Clone)]
struct Chain<'a> {
    is_old: bool,
    path: Vec<&'a str>,
}

impl<'a> Eyes<'a> {
    fn follow(&mut self, expression: &'a IdedExpr) {
        if let Some((chain, presence)) = self.chain(expression) {
            self.tell(&chain, if presence { &PRESENCE } else { &ALL });
            return;
        }
        match &expression.expr {
            Expr::Select(select) => self.follow(&select.operand),
            Expr::Call(call) => {
                let parts: Vec<&IdedExpr> = call.target.as_deref().into_iter().chain(&call.args).collect();
                if let ("size", [counted]) = (call.func_name.as_str(), parts.as_slice())
                    && let Some((chain, false)) = self.chain(counted)
                {
                    self.tell(&chain, &COUNT);
                } else {
                    for part in parts {
                        self.follow(part);
                    }
                }
            }
            Expr::List(list) => list.elements.iter().for_each(|item| self.follow(item)),
            Expr::Comprehension(turn) => self.follow_loop(turn),
            // Maps and structures built by a rule: rare, so the rule is taken to look at everything.
            Expr::Map(_) | Expr::Struct(_) => {
                self.at.join(&ALL);
                self.back_at.join(&ALL);
            }
            Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
        }
    }

    fn follow_loop(&mut self, turn: &'a ComprehensionExpr) {
        let list = self.chain(&turn.iter_range).map(|(chain, _)| chain);
        match &list {
            Some(chain) => self.tell(chain, &COUNT),
            None => self.follow(&turn.iter_range),
        }
        self.items.push((&turn.iter_var, list));
        for part in [&turn.accu_init, &turn.loop_cond, &turn.loop_step, &turn.result] {
            self.follow(part);
        }
        self.items.pop();
    }

    /// The chain that an expression is, if it is one, and whether it only asks for presence (`has`).
    fn chain(&self, expression: &'a IdedExpr) -> Option<(Chain<'a>, bool)> {
        let mut names = Vec::new();
        let mut at = expression;
        let presence = matches!(&at.expr, Expr::Select(select) if select.test);
        while let Expr::Select(select) = &at.expr {
            names.push(select.field.as_str());
            at = &select.operand;
        }
        let Expr::Ident(variable) = &at.expr else { return None };
        let item = self.items.iter().rev().find(|(name, _)| name == variable);
        let mut chain = match (item, variable.as_str()) {
            (Some((_, list)), _) => list.clone()?,
            (None, "self") => Chain { is_old: false, path: Vec::new() },
            (None, "oldSelf") => Chain { is_old: true, path: Vec::new() },
            (None, _) => return None,
        };
        chain.path.extend(names.into_iter().rev());
        Some((chain, presence))
    }

    fn tell(&mut self, chain: &Chain<'_>, end: &Look) {
        let look = if chain.is_old { &mut self.back_at } else { &mut self.at };
        look.add(&chain.path, end);
    }
}

#[cfg(test)]
mod tests {
    use kube::core::cel::cel::Program;
    use serde_json::json;

    use super::*;

    fn looks_at(rule: &str) -> Look {
        looks(Program::compile(rule).unwrap().expression()).0
    }

    fn field(name: &str, look: Look) -> Look {
        Look { fields: [(name.to_owned(), look)].into(), ..Look::default() }
    }

    #[test]
    fn a_rule_looks_no_further_than_it_says() {
        assert_eq!(looks_at("true"), Look::default());
        assert_eq!(looks_at("size(self) > 0"), COUNT.clone());
        assert_eq!(looks_at("self.startsWith('a')"), ALL.clone());
        assert_eq!(looks_at("has(self.a.b)"), field("a", field("b", PRESENCE.clone())));
        assert!(looks_at("self.a == 1 && has(self.a.b)").fields["a"].all);
        assert!(looks_at("self['a'] == 1").all);
    }

    #[test]
    fn of_a_list_it_looks_at_a_field_of_each_item() {
        let uid = |more: Look| Look { count: true, ..field("uid", more) };
        assert_eq!(looks_at("self.a.all(x, x.uid > 1)"), field("a", uid(ALL.clone())));
        assert_eq!(looks_at("self.a.exists(x, has(x.uid))"), field("a", uid(PRESENCE.clone())));
        assert!(looks_at("self.a.all(x, x in ['b'])").fields["a"].all, "the item itself");
        let nested = looks_at("self.a.all(x, x.b.exists(y, y.c == x.uid))");
        assert_eq!(nested.fields["a"].fields["b"].fields["c"], ALL.clone());
        let (at, back_at) =
            looks(Program::compile("oldSelf.a.all(o, self.a.exists(n, n.uid == o.uid))").unwrap().expression());
        assert_eq!(at, field("a", uid(ALL.clone())));
        assert_eq!(back_at, at);
    }

    #[test]
    fn what_is_not_looked_at_does_not_matter() {
        let noted = |rule: &str, value: Value| {
            let mut notes = std::hash::DefaultHasher::new();
            looks_at(rule).note(&value, &mut notes);
            notes.finish()
        };
        let same = |rule, one, other| noted(rule, one) == noted(rule, other);
        let rule = "self.a > 1 && has(self.b)";
        assert!(same(rule, json!({"a": 2, "b": 1, "c": 1}), json!({"a": 2, "b": 2})));
        assert!(!same(rule, json!({"a": 2, "b": 1}), json!({"a": 3, "b": 1})));
        assert!(!same(rule, json!({"a": 2, "b": 1}), json!({"a": 2})));

        let rule = "self.a.all(x, x.uid > 1)";
        assert!(same(rule, json!({"a": [{"uid": 2}], "b": 1}), json!({"a": [{"uid": 2}]})));
        assert!(!same(rule, json!({"a": [{"uid": 2}]}), json!({"a": [{"uid": 3}]})));
        assert!(!same(rule, json!({"a": [{"uid": 2}]}), json!({"a": []})));

        let rule = "size(self.a) > 1";
        assert!(same(rule, json!({"a": {"k": 1}}), json!({"a": {"k": 2}})));
        assert!(!same(rule, json!({"a": {"k": 1}}), json!({"a": {"l": 1}})));
        assert!(!same(rule, json!({"a": "four"}), json!({"a": "three"})));
        assert!(!same("self.__namespace__ == 'a'", json!({"namespace": "a"}), json!({"namespace": "b"})));
    }
}
