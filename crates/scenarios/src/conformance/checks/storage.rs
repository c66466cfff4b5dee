//! Storage: VolumeAttachments, and the volumes that they speak of.

use serde_json::json;

use crate::conformance::answer::{must, same, text};
use crate::conformance::bench::Bench;
use crate::conformance::objects::{NOBODY, attachment};
use crate::conformance::places::{ATTACHMENTS, CLAIMS, VOLUMES};
use crate::conformance::{Told, table};

table! { "storage";
    attachment_of_nothing: "an attachment may name a node and a volume that do not exist; it is not attached";
    attachment_never_moves: "its spec never changes";
    attachment_needs_an_attacher: "it names an attacher and a node";
    attached_by_status: "that it is attached is said in its status";
    error_by_status: "so is why it could not be detached";
    held_attachment: "one that its attacher holds stays, marked, until the attacher is done";
    attachment_of_another: "it is deleted by its UID, and by no other";
    attachment_answers: "a delete answers with the attachment";
    volume_by_default: "a PersistentVolume is kept when its claim goes, unless it says otherwise, and is a filesystem";
    claim_waits: "a claim of a class that nobody serves waits";
    claim_keeps_its_modes: "access modes of a claim never change";
}

async fn attachment_of_nothing(bench: &Bench) -> Told {
    let made = bench.make(ATTACHMENTS, attachment(&bench.name("a"), "nowhere")).await?;
    same("status", &made.object["status"], &json!({"attached": false}))
}

async fn attachment_never_moves(bench: &Bench) -> Told {
    let made = bench.make(ATTACHMENTS, attachment(&bench.name("a"), "nowhere")).await?;
    let patch = json!({"spec": {"nodeName": "elsewhere"}});
    let refusal = bench.merge(&made.path, &patch).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueInvalid", "spec", "field is immutable")
}

async fn attachment_needs_an_attacher(bench: &Bench) -> Told {
    let mut bare = attachment(&bench.name("a"), "");
    bare["spec"]["attacher"] = "".into();
    let refusal = bench.post(ATTACHMENTS, &bare).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueRequired", "spec.attacher", "Required value")?;
    refusal.cause("FieldValueInvalid", "spec.nodeName", "a lowercase RFC 1123 subdomain")
}

async fn attached_by_status(bench: &Bench) -> Told {
    let made = bench.make(ATTACHMENTS, attachment(&bench.name("a"), "nowhere")).await?;
    let patch = json!({"status": {"attached": true, "attachmentMetadata": {"devicePath": "/dev/x"}}});
    let patched = bench.merge(&made.status(), &patch).await?.is(200)?;
    same("status", &patched["status"], &patch["status"])
}

async fn error_by_status(bench: &Bench) -> Told {
    let made = bench.make(ATTACHMENTS, attachment(&bench.name("a"), "nowhere")).await?;
    let error = json!({"message": "busy", "time": "2026-03-01T12:00:00Z"});
    let patched = bench.merge(&made.status(), &json!({"status": {"detachError": error}})).await?.is(200)?;
    same("error", &patched["status"]["detachError"], &error)
}

async fn held_attachment(bench: &Bench) -> Told {
    let mut held = attachment(&bench.name("a"), "nowhere");
    held["metadata"]["finalizers"] = json!(["external-attacher/nobody-palisade-dev"]);
    let made = bench.make(ATTACHMENTS, held).await?;
    bench.delete(&made.path, &json!({"preconditions": {"uid": made.uid()}})).await?.is(200)?;
    let now = bench.read(&made.path).await?;
    must(!text(&now, "/metadata/deletionTimestamp").is_empty(), || "it is not marked".to_owned())?;
    bench.merge(&made.path, &json!({"metadata": {"finalizers": []}})).await?.is(200)?;
    bench.gone(&made.path).await
}

async fn attachment_of_another(bench: &Bench) -> Told {
    let made = bench.make(ATTACHMENTS, attachment(&bench.name("a"), "nowhere")).await?;
    let refusal =
        bench.delete(&made.path, &json!({"preconditions": {"uid": NOBODY}})).await?.refused(409, "Conflict")?;
    refusal.mentions(&format!("on VolumeAttachment.storage.k8s.io \"{}\"", made.name()))?;
    bench.untouched(&made.path, &made.object).await
}

async fn attachment_answers(bench: &Bench) -> Told {
    let made = bench.make(ATTACHMENTS, attachment(&bench.name("a"), "nowhere")).await?;
    let last = bench.delete(&made.path, &json!({})).await?.is(200)?;
    same("answer", [text(&last, "/kind"), text(&last, "/metadata/uid")], ["VolumeAttachment", made.uid()])
}

fn volume(name: &str) -> serde_json::Value {
    json!({"metadata": {"name": name}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "nobody",
        "csi": {"driver": "nobody.palisade.dev", "volumeHandle": name},
    }})
}

async fn volume_by_default(bench: &Bench) -> Told {
    let made = bench.make(VOLUMES, volume(&bench.name("v"))).await?;
    let spec = &made.object["spec"];
    let told = [&spec["persistentVolumeReclaimPolicy"], &spec["volumeMode"]];
    same("spec", told, [&json!("Retain"), &json!("Filesystem")])
}

fn claim(name: &str) -> serde_json::Value {
    json!({"metadata": {"name": name}, "spec": {
        "accessModes": ["ReadWriteOnce"], "storageClassName": "nobody", "resources": {"requests": {"storage": "1Gi"}},
    }})
}

async fn claim_waits(bench: &Bench) -> Told {
    let made = bench.make(CLAIMS, claim(&bench.name("c"))).await?;
    same("phase", text(&made.object, "/status/phase"), "Pending")
}

async fn claim_keeps_its_modes(bench: &Bench) -> Told {
    let made = bench.make(CLAIMS, claim(&bench.name("c"))).await?;
    let patch = json!({"spec": {"accessModes": ["ReadWriteMany"]}});
    let refusal = bench.merge(&made.path, &patch).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueForbidden", "spec", "spec is immutable after creation except")
}
