//! The API server estimates what each rule can cost and refuses a definition above 10 million for one rule, or 100 million
//! for all of them. Its estimate is Go code; here is one in its spirit, from the schemas' own bounds, on the dear side.
//!
//! The estimator of Kubernetes 1.36 says, for the two dearest kinds: `FenceConfig` 38 million in all, 5.1 for one rule;
//! `NodeFence` 4.5 million in all, 2.2 for one rule.

use std::collections::BTreeMap;

use kube::core::cel::cel::{
    IdedExpr, Program,
    common::ast::{ComprehensionExpr, Expr, LiteralValue},
};
use serde_json::Value;

use crate::walk::{each, kinds, rules};

const PER_RULE: u64 = 10_000_000;
const PER_KIND: u64 = 100_000_000;

#[test]
fn every_rule_is_cheap_enough_for_the_api_server() {
    for kind in kinds() {
        let mut total = 0;
        each(&kind, &mut |place| {
            for rule in rules(place.schema) {
                let text = rule["rule"].as_str().unwrap();
                let cost = place.cardinality * estimate(text, place.schema);
                assert!(cost <= PER_RULE, "{} costs {cost}: {text}", place.path);
                total += cost;
            }
        });
        assert!(total <= PER_KIND, "{} costs {total}", kind.name);
    }
}

/// For these the API server assumes the worst: 10^19 for one `indexOf` in a list of three words.
#[test]
fn no_rule_uses_a_function_whose_cost_is_not_known() {
    for kind in kinds() {
        each(&kind, &mut |place| {
            for rule in rules(place.schema) {
                let rule = rule["rule"].as_str().unwrap();
                for function in ["indexOf(", ".sum(", ".min(", ".max(", ".split(", ".join(", ".replace("] {
                    assert!(!rule.contains(function), "{}: {rule}", place.path);
                }
            }
        });
    }
}

/// What is known of a value before there is one.
#[derive(Clone, Copy)]
enum Shape<'a> {
    /// It has this schema.
    Of(&'a Value),
    /// A list or text of at most this size, made by the rule itself.
    Sized(u64),
}

type Names<'a> = BTreeMap<String, Shape<'a>>;

fn estimate(rule: &str, schema: &Value) -> u64 {
    let program = Program::compile(rule).unwrap();
    let names = ["self", "oldSelf"].map(|name| (name.to_owned(), Shape::Of(schema)));
    cost(program.expression(), &Names::from(names))
}

fn size(shape: Shape<'_>) -> u64 {
    let schema = match shape {
        Shape::Sized(size) => return size,
        Shape::Of(schema) => schema,
    };
    let bound = |keyword: &str| schema[keyword].as_u64().unwrap_or(32);
    match schema["type"].as_str() {
        Some("string") => bound("maxLength"),
        Some("array") => bound("maxItems") * size(Shape::Of(&schema["items"])).min(64),
        Some("object") if schema.get("additionalProperties").is_some() => bound("maxProperties"),
        Some("object") => {
            schema["properties"].as_object().into_iter().flatten().map(|(_, field)| size(Shape::Of(field))).sum()
        }
        _ => 1,
    }
}

fn count(shape: Shape<'_>) -> u64 {
    match shape {
        Shape::Sized(size) => size,
        Shape::Of(schema) => {
            schema["maxItems"].as_u64().or(schema["maxProperties"].as_u64()).expect("a bounded list or map")
        }
    }
}

fn shape<'a>(expression: &IdedExpr, names: &Names<'a>) -> Shape<'a> {
    match &expression.expr {
        Expr::Ident(name) => names.get(name).copied().unwrap_or(Shape::Sized(1)),
        Expr::Select(select) => match shape(&select.operand, names) {
            Shape::Of(schema) if schema["properties"].get(&select.field).is_some() => {
                Shape::Of(&schema["properties"][&select.field])
            }
            _ => Shape::Sized(1),
        },
        Expr::Call(call) if call.func_name == "_[_]" => match shape(&call.args[0], names) {
            Shape::Of(schema) => Shape::Of(schema.get("additionalProperties").unwrap_or(&schema["items"])),
            made @ Shape::Sized(_) => made,
        },
        Expr::Literal(LiteralValue::String(text)) => Shape::Sized(text.inner().len() as u64),
        Expr::List(list) => Shape::Sized(list.elements.len() as u64),
        Expr::Comprehension(comprehension) => Shape::Sized(count(shape(&comprehension.iter_range, names))),
        _ => Shape::Sized(1),
    }
}

fn cost(expression: &IdedExpr, names: &Names<'_>) -> u64 {
    let all = |expressions: &[IdedExpr]| expressions.iter().map(|expression| cost(expression, names)).sum::<u64>();
    let size_of = |expression: &IdedExpr| size(shape(expression, names));
    match &expression.expr {
        Expr::Select(select) => 1 + cost(&select.operand, names),
        Expr::List(list) => 10 + all(&list.elements),
        Expr::Comprehension(comprehension) => cost_of_loop(comprehension, names),
        Expr::Call(call) => {
            let target = call.target.as_deref();
            let own = match (call.func_name.as_str(), target, call.args.as_slice()) {
                ("_==_" | "_!=_", _, [left, right]) => 1 + size_of(left).min(size_of(right)) / 10,
                ("@in", _, [item, list]) => 1 + count(shape(list, names)) * (1 + size_of(item).min(64) / 10),
                ("matches", Some(text), [pattern]) => 1 + (size_of(text) / 10 + 1) * (size_of(pattern) / 4 + 1),
                ("contains", Some(text), [part]) => 1 + 4 * (size_of(text) / 10 + 1) * (size_of(part) / 10 + 1),
                _ => 1 + target.map_or(0, |target| size_of(target).min(64) / 10),
            };
            own + all(&call.args) + target.map_or(0, |target| cost(target, names))
        }
        _ => 1,
    }
}

fn cost_of_loop(comprehension: &ComprehensionExpr, names: &Names<'_>) -> u64 {
    let range = shape(&comprehension.iter_range, names);
    let item = match range {
        Shape::Of(schema) if schema["type"] == "array" => Shape::Of(&schema["items"]),
        // A map is walked by its keys, and the API server takes keys for short.
        _ => Shape::Sized(1),
    };
    let mut inside = names.clone();
    inside.insert(comprehension.iter_var.clone(), item);
    let turn = cost(&comprehension.loop_cond, &inside) + cost(&comprehension.loop_step, &inside);
    // Twice, as the API server also counts the work on the result of each turn.
    cost(&comprehension.iter_range, names) + count(range) * 2 * turn + cost(&comprehension.result, names)
}
