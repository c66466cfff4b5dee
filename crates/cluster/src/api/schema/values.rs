//! Values as rules see them.

use std::sync::Arc;

use kube::core::cel::{
    KubeCelExt,
    cel::{
        Context, Program, Value as CelValue,
        objects::{Key, Map as CelMap},
    },
};
use serde_json::Value;

use super::{Format, Node, Type, look::Look};

thread_local! {
    /// All functions that Kubernetes offers to rules. Making it takes longer than most rules.
    pub(super) static FUNCTIONS: Context<'static> = Context::default().with_all();
}

/// A value as rules see it, as far as they look.
pub(super) fn to_cel(value: &Value, node: Option<&Node>, look: &Look) -> CelValue {
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(bool) => CelValue::Bool(*bool),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), node.map(|node| node.kind)) {
            (Some(whole), _, kind) if kind != Some(Type::Number) => CelValue::Int(whole),
            (None, Some(whole), kind) if kind != Some(Type::Number) => CelValue::UInt(whole),
            _ => CelValue::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => text_to_cel(text, node.map_or(Format::None, |node| node.format)),
        Value::Array(items) => {
            let schema = node.and_then(|node| node.items.as_deref());
            CelValue::List(Arc::new(items.iter().map(|item| to_cel(item, schema, &Look::All)).collect()))
        }
        Value::Object(fields) => {
            // Keys of a map are data, names of fields are words of the language.
            let is_map = node.is_some_and(|node| node.values.is_some());
            let entry = |(name, field): (&String, &Value)| {
                let word = if is_map { name.clone() } else { escaped(name) };
                let below = match look {
                    Look::All => &Look::All,
                    Look::Fields(looked_at) => looked_at.get(&word)?,
                };
                let schema = node.and_then(|node| node.field(name));
                Some((Key::String(Arc::new(word)), to_cel(field, schema, below)))
            };
            CelValue::Map(CelMap { map: Arc::new(fields.iter().filter_map(entry).collect()) })
        }
    }
}

fn text_to_cel(text: &str, format: Format) -> CelValue {
    // Times and durations are made by the interpreter's own functions, so that we need no calendar of its kind.
    let function = match format {
        Format::DateTime => "timestamp(self)",
        Format::Duration => "duration(self)",
        Format::None | Format::Int32 => return CelValue::String(Arc::new(text.to_owned())),
    };
    let made = FUNCTIONS.with(|functions| {
        let mut names = functions.new_inner_scope();
        names.add_variable_from_value("self", CelValue::String(Arc::new(text.to_owned())));
        Program::compile(function).ok()?.execute(&names).ok()
    });
    made.unwrap_or_else(|| CelValue::String(Arc::new(text.to_owned())))
}

/// The name of a field as a rule has to write it.
fn escaped(name: &str) -> String {
    const RESERVED: [&str; 21] = [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ];
    if RESERVED.contains(&name) {
        return format!("__{name}__");
    }
    if name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return name.to_owned();
    }
    // A single underscore stays as it is; a double one could be taken for an escape.
    name.replace("__", "__underscores__").replace('.', "__dot__").replace('-', "__dash__").replace('/', "__slash__")
}
