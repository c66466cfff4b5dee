//! Why a node is not let back in yet.

use crate::time::Span;

reasons! {
    /// Why a node that came back stays quarantined.
    pub enum ReturnReason {
        NodeGone => "there is no such Node",
        NotReady => "it is not Ready",
        ReadyTooShort { left: Span } => "it is Ready, for {left} less than it has to be",
        EvidenceStands => "what it was fenced for has not cleared",
        PodsNotListed => "its pods could not be listed",
        PodLeft { pod: String } => "the released pod {pod} is still there",
        AttachmentsNotListed => "its attachments could not be listed",
        AttachmentLeft { attachment: String } => "the attachment {attachment} of a released volume is still there",
        VolumeInUse { volume: String } => "it still uses the released volume {volume}",
        OldBoot { method: String } => "the boot that it runs may be older than the release, so stale writes may wait behind {method}; restart it",
    }
}
