//! Reasons of requests: where a `NodeFencingRequest` stands, and why it is no longer kept.
//!
//! Promise: each status of a request carries exactly one of these, written when it changes and not on every pass.

use crate::ident::{NodeName, Uid};
use crate::request::FenceResult;
use crate::time::Span;

reasons! {
    /// Where a request stands.
    pub enum RequestReason {
        FenceAsked { node: NodeName } =>
            "every gate is open; a fence for {node} is being created. Nothing has been done to the node yet",
        Attaching { fence: Uid } =>
            "the node is already being fenced (fence {fence}); the request joins that fence instead of starting another",
        Attached { fence: Uid } =>
            "fence {fence} works on this request; `kubectl palisade explain` tells where it stands",
        HeldByGate { gate: Box<str>, why: Box<str>, numbers: Box<str> } =>
            "held at the gate {gate}: {why} ({numbers}); nothing has been done to the node, and the gate is looked at again by itself",
        RejectedByGate { gate: Box<str>, why: Box<str>, numbers: Box<str> } =>
            "rejected at the gate {gate}: {why} ({numbers}); nothing has been done to the node, and this request is over. Make another when the cause is gone",
        DryRunVerdict { verdict: Box<str> } =>
            "the policy is in mode `DryRun`; in mode Enforce the answer would be: {verdict}. Nothing has been done to the node",
        EvidenceInDoubt { seen: Box<str> } =>
            "every gate is open, but the evidence cannot be told just now ({seen}); no fence is begun before it stands again",
        NodeNotRead { node: NodeName } =>
            "{node} has not been read yet; nothing is decided before",
        FenceNotRead { node: NodeName } =>
            "it is not known yet whether a fence for {node} lives; nothing is begun before",
        FenceEnding { fence: Uid } =>
            "the last fence of this node ({fence}) has ended but is still there; a new one follows when it is gone",
        FenceDoesLess { fence: Uid } =>
            "the node is being fenced ({fence}), but that fence does less than this request asks for; this one follows when it is over",
        FenceOfPredecessor { fence: Uid, of: Uid } =>
            "a fence for the earlier Node object of this name ({of}) still cleans up ({fence}); this request waits for its end and does not join it",
        FenceUnseen { fence: Uid } =>
            "fence {fence} is not in our cache; it is read live before it counts as lost",
        Recovered =>
            "what the node was claimed for cleared before anything was done to it; nothing is left to do",
        Withdrawn =>
            "who asked for it took the request back before anything was done to the node; nothing is left to do",
        NodeGone { node: NodeName } =>
            "{node} is no longer in the cluster; there is nothing to fence under this request",
        NodeReplaced { node: NodeName, asked: Uid, found: Uid } =>
            "the request was made for the Node object {asked}, and {node} is now {found}: another life of that name, which nobody asked to fence",
        FenceEnded { fence: Uid, result: FenceResult } =>
            "fence {fence} has ended: {result}",
        FenceFailed { fence: Uid, cause: Box<str> } =>
            "fence {fence} has ended without success: {cause}. Look at the node; its request is kept longer than others",
        FenceLost { fence: Uid } =>
            "fence {fence} is gone without a result: somebody took its finalizer away. What it had done is not known; look at the node's taints and power before you use it",
    }
}

reasons! {
    /// Why a request is no longer kept as history.
    pub enum HistoryReason {
        AgedOut { age: Span, keep: Span } =>
            "the request ended {age} of watched time ago, and such are kept for {keep}",
        CrowdedOut { newer: usize, keep: usize } =>
            "{newer} newer requests of its kind have ended since, and {keep} are kept",
    }
}
