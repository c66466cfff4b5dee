//! Values as rules see them.

use std::sync::Arc;

use kube::core::cel::{
    KubeCelExt,
    cel::{
        Context, Program, Value as CelValue,
        objects::{Key, Map as CelMap},
    },
};
use serde_json::{Map, Value};

use super::{
    Format, Node, Type,
    look::{Look, PRESENCE},
};

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
            CelValue::List(Arc::new(items.iter().map(|item| to_cel(item, schema, look)).collect()))
        }
        Value::Object(fields) => CelValue::Map(CelMap { map: Arc::new(fields_to_cel(fields, node, look).collect()) }),
    }
}

fn fields_to_cel<'a>(
    fields: &'a Map<String, Value>,
    node: Option<&'a Node>,
    look: &'a Look,
) -> Box<dyn Iterator<Item = (Key, CelValue)> + 'a> {
    let is_map = node.is_some_and(|node| node.values.is_some());
    let entry = move |name: &'a str, word: String, field: &'a Value, below: &'a Look| {
        (Key::String(Arc::new(word)), to_cel(field, node.and_then(|node| node.field(name)), below))
    };
    // Keys of a map are data, names of fields are words of the language.
    let word = move |name: &str| if is_map { name.to_owned() } else { escaped(name) };
    let needs_each = look.all || (is_map && look.count) || look.fields.keys().any(|name| name.contains("__"));
    if needs_each {
        return Box::new(fields.iter().filter_map(move |(name, field)| {
            let word = word(name);
            let below = match look.fields.get(&word) {
                _ if look.all => look,
                Some(below) => below,
                None if is_map && look.count => &PRESENCE,
                None => return None,
            };
            Some(entry(name, word, field, below))
        }));
    }
    Box::new(
        look.fields.iter().filter_map(move |(name, below)| Some(entry(name, name.clone(), fields.get(name)?, below))),
    )
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
