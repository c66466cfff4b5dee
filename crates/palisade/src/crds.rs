//! `palisade crds`: the custom resource definitions as YAML.
//!
//! Promise: the same bytes every time, ready for `kubectl apply -f -`.

use std::io::Write;

use anyhow::Context;

pub(crate) fn print(to: &mut impl Write) -> anyhow::Result<()> {
    for crd in palisade_api::crds() {
        let name = crd.metadata.name.as_deref().unwrap_or_default();
        let yaml = serde_saphyr::to_string(&crd).with_context(|| format!("failed to write {name} as YAML"))?;
        write!(to, "---\n{yaml}").with_context(|| format!("failed to print {name}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::print;

    #[test]
    fn prints_every_kind_once() -> anyhow::Result<()> {
        let mut out = Vec::new();
        print(&mut out)?;
        let text = String::from_utf8(out)?;
        for crd in palisade_api::crds() {
            let line = format!("\n    kind: {}\n", crd.spec.names.kind);
            assert_eq!(text.matches(&line).count(), 1, "{line}");
        }
        Ok(())
    }
}
