//! Reasons of detect: why a node is claimed, watched, not believed, or still not well.
//!
//! Promise: each carries the numbers that it was judged by, measured by our own clock, never by a stamp of another machine.

use crate::detect::conditions::Status;
use crate::detect::lease::Seconded;
use crate::detect::remedy::Remedy;
use crate::detect::witness::Witness;
use crate::ident::ProviderName;
use crate::time::Span;

reasons! {
    /// Why a node is claimed to need fencing. A claim decides nothing: it is vetted.
    pub enum ClaimReason {
        ConditionHeld { condition: Box<str>, status: Status, held: Span, period: Span, reported: Box<str> } =>
            "{condition} has been {status} for {held} ({reported}), and the remedy allows {period}; the node is claimed for fencing, and the gates decide",
        LeaseSilent { missed: u64, silence: Span, witness: Seconded } =>
            "the node's lease has not been renewed for {silence} ({missed} renewals missed), seconded by {witness}; the node is claimed for fencing, and the gates decide",
        StorageOffline { provider: ProviderName, offline: Span } =>
            "the storage system {provider} says that the node is offline, for {offline} as far as we saw; the node is claimed for fencing, and the gates decide",
        EventsRepeated { event: Box<str>, count: u32, limit: u32, window: Span } =>
            "the node reported {event} {count} times within {window}, and the remedy allows fewer than {limit}; the node is claimed for fencing, and the gates decide",
    }
}

reasons! {
    /// Why a node is watched: the evidence neither suffices for a claim nor has cleared.
    pub enum WatchReason {
        ObserverBlind { blind: Span } =>
            "the API has not answered us for {blind}, so nothing can be said of this node; all waiting times start anew when it answers. Look at the operator's own network and at the API server",
        ConditionHolding { condition: Box<str>, status: Status, held: Span, period: Span } =>
            "{condition} has been {status} for {held}; at {period} the node is claimed for fencing unless it changes",
        ConditionMissing { condition: Box<str> } =>
            "the node does not report {condition}; that is neither a failure nor a recovery. If it should, look whether its reporter (kubelet, node-problem-detector) runs there",
        ConditionUnreadable { condition: Box<str>, said: Box<str> } =>
            "the node reports {condition} as `{said}`, which is none of True, False and Unknown; nothing is decided from it. Look at what writes this condition",
        LeaseLate { missed: u64, silence: Span } =>
            "the node's lease is late: no renewal for {silence}; witnesses are being asked, nothing is claimed yet",
        LeaseUnwitnessed { missed: u64, silence: Span, abstained: usize } =>
            "the node's lease has not been renewed for {silence} ({missed} renewals missed), but no witness seconds it ({abstained} abstained); the claim waits for one, or for Ready=Unknown where the remedy takes that",
        LeaseContradicted { missed: u64, silence: Span, witness: Witness } =>
            "the node's lease has not been renewed for {silence} ({missed} renewals missed), but {witness} sees the node alive; nothing is claimed from the lease. Look at the network between that node and the API server",
        LeaseAbsent =>
            "the node has no lease in kube-node-lease; its silence cannot be measured, and only its conditions count. Look whether its kubelet may write leases",
        LeaseNeverRenewed =>
            "the node's lease has no renewTime; its silence cannot be measured, and only the node's conditions count",
        LeaseUnheard =>
            "the node's lease has not been renewed since this replica began to watch; that is no silence yet, and no sign of life either",
        LeaseOfAnother { holder: Box<str> } =>
            "the node's lease is held by `{holder}`, not by the node itself; its renewals say nothing of this node. Look for two machines with one name",
        LeaseDurationAbsurd { seconds: i64, least: i64, most: i64 } =>
            "the node's lease lasts {seconds} s, outside of {least} to {most} s; missed renewals cannot be counted. Look at nodeLeaseDurationSeconds of its kubelet",
        StorageUnknown { provider: ProviderName } =>
            "the storage system {provider} does not know the node's state; unknown is left alone, neither claimed nor taken for recovered",
        StorageNotListed { provider: ProviderName } =>
            "the storage system {provider} does not list the node; that is neither a failure nor a recovery",
        StorageHolding { provider: ProviderName, offline: Span, period: Span } =>
            "the storage system {provider} has called the node offline for {offline}; at {period} the node is claimed for fencing unless it changes",
        StorageSilent { provider: ProviderName, age: Span, limit: Span } =>
            "the storage system {provider} last answered {age} ago, and after {limit} its word is stale; nothing is claimed from it. Look at the provider",
        StorageAlreadyClaimed { provider: ProviderName, offline: Span } =>
            "the storage system {provider} says that the node is offline, for {offline} as far as we saw; it has been claimed for that, and is claimed again only when it was online in between or the claim expires",
        EventsCounting { event: Box<str>, count: u32, limit: u32, window: Span } =>
            "the node reported {event} {count} times within {window}; at {limit} it is claimed for fencing",
        EventsUnreadable { event: Box<str>, said: i64 } =>
            "an event {event} of the node carries the count {said}, which cannot be; it is not counted. Look at what writes these events",
    }
}

reasons! {
    /// Why a witness's word does not count.
    pub enum AbstainReason {
        CouldNotLook =>
            "the witness itself could not look",
        WordTooOld { age: Span, fresh: Span } =>
            "its last word is {age} old, and only words of the last {fresh} speak of now",
        NeverSeenAlive =>
            "it never saw this node alive, so its silence shows nothing (a port behind a firewall is always silent)",
        AliveTooLongAgo { before: Span, trusted: Span } =>
            "it last saw the node alive {before} before the lease fell silent, and only {trusted} are trusted",
        PowerOnly =>
            "the machine has power, which does not tell whether its kernel lives",
    }
}

reasons! {
    /// Why a remedy is due, or not yet.
    pub enum RemedyReason {
        FirstDue { rule: Box<str>, remedy: Remedy } =>
            "{rule} has been reached; its first remedy `{remedy}` is due",
        NextDue { rule: Box<str>, remedy: Remedy, watched: Span, period: Span } =>
            "{rule} still stands {watched} after the last remedy, and {period} were given to it; the next remedy `{remedy}` is due",
        StillTrying { rule: Box<str>, watched: Span, period: Span } =>
            "{rule} still stands {watched} after the last remedy; the next is due at {period}",
        EvidenceUnsure { rule: Box<str>, seen: Box<str> } =>
            "{rule} neither stands nor has cleared ({seen}); no further remedy is begun, and no recovery",
        NoneLeft { rule: Box<str>, tried: usize } =>
            "{rule} still stands and all of its {tried} remedies have been tried; a person has to look at the node",
        EvidenceCleared { rule: Box<str> } =>
            "{rule} no longer stands; the node may recover",
    }
}

reasons! {
    /// Why a node is not yet healthy.
    pub enum UnwellReason {
        NotReady { ready: Status } =>
            "Ready is {ready}; the node is not well before it is True",
        StaleReady =>
            "Ready is True, but the node's lease is silent: that word may be 50 s old and does not count",
        EvidenceStands { seen: Box<str> } =>
            "the node is Ready, but what it was claimed for has not cleared: {seen}",
        StepNotDone =>
            "the node is Ready, but a person asked for a step that has not been done yet",
    }
}
