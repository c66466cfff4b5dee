//! Why a fence moved, failed or waits.

use crate::ident::MethodName;
use crate::prove::Class;
use crate::time::Span;

reasons! {
    /// Why the fence was recorded anew.
    pub enum MoveReason {
        RecoveredByItself => "the node is healthy again and nothing had been done to it",
        VettingRefused => "vetting refuses the fence, and nothing had been done to the node",
        SlotTaken => "a slot of the budget is ours",
        SlotGivenBack => "the slot of the budget goes back",
        SlotLost => "the ledger was made anew without our slot, and nothing had been done yet; another one is asked for",
        IsolationBegins { attempt: u32 } => "attempt {attempt}: isolation begins",
        NextMethod { level: u32, method: u32 } => "level {level}: method {method} is next",
        MethodRetried { method: MethodName, tries: u32 } => "{method} is tried again, {tries} tries so far",
        NextLevel { level: u32, failed: FailReason } => "level {level} is next: {failed}",
        StepRetried { rounds: u32, failed: FailReason } => "the step is tried again, {rounds} rounds so far: {failed}",
        SeenRunning { method: MethodName } => "{method}: the machine was seen running before it is switched off",
        Isolated { proofs: u32 } => "the node is isolated, {proofs} proofs in force",
        IsolatedWithoutProof => "the isolation step ended without a proof; nothing is released by it",
        QuarantineIntended => "the node gets our quarantine taint",
        OutOfServiceIntended => "the node gets the out-of-service taint, as the policy asks",
        OutOfServiceLifted => "the out-of-service taint is gone",
        ReleaseIntended { pods: u32 } => "{pods} pods are to be released",
        PodMarked { pod: String } => "{pod} is marked; no kubelet starts it again",
        PodGone { pod: String } => "{pod} is removed",
        PodDetached { pod: String } => "{pod}: its volumes are detached",
        DetachIntended { volumes: u32 } => "{volumes} volumes leave volumesInUse",
        VolumesOut { volumes: u32 } => "{volumes} volumes have left volumesInUse",
        Unpublished { volume: String } => "{volume} was unpublished from the node with fence",
        DetachForbidden => "a volume came back into volumesInUse: a kubelet lives there, so it is not edited again",
        ProofVoided { class: Class, why: crate::reason::prove::ProofEnd } => "the {class} proof ended: {why}",
        IsolateAgain => "a proof ended after pods were released by it; the node is isolated again at once",
        NodeReplaced => "another Node took the name; the fence goes on only to switch the machine on and clean up",
        BootsWatched => "the machine's boots are watched from here on: what was released stays out of reach of the old one",
        BootedAnew => "the node shows a new boot, so the old one is gone; waiting for it to be healthy and clean",
        NoPowerStep { waited: Span } => "the node is still unwell after {waited}, and no power step is configured; it has to come back by itself",
        PowerBegins { waited: Span } => "the node is still unwell after {waited}; the power step begins",
        OnIntended => "the machine is to be switched on",
        ReleaseTimedOut { waited: Span } => "not every pod could be released in {waited}; the machine is switched on, and these pods start there again",
        HealthyAgain => "the node is healthy again",
        PoweredOn => "the machine is on again; waiting for the node",
        NodeReturned => "the node is healthy and clean; recovery begins",
        LiftWithoutNode => "the Node object is gone; what cuts its machine off is lifted",
        LiftIntended { method: MethodName } => "{method} is to be lifted",
        Lifted { method: MethodName } => "{method} is lifted",
        Recovered => "the node is back",
        HeldOff => "the machine stays off, as asked; resume ends this",
        NodeGone => "the Node object is gone and nothing is left to undo",
        StopAsked => "an admin stopped the fence; only what is half done is finished",
        Stopped => "stopped, and nothing is left to undo",
        ResumeAsked => "an admin resumed the fence",
        DeletionIntended => "everything is released; the Node object is to be deleted",
        Confirmed => "a person vouches that this boot of the node is isolated",
        DumpSeen => "the node is writing a kernel dump, and the policy lets that count",
        Failed { why: FailReason } => "the step failed: {why}",
        Restarted { restarts: u32 } => "the flow starts again, restart {restarts}",
        SlowRetry { restarts: u32 } => "no restart is left; a slow retry, number {restarts}",
        TimeKept { waited: Span } => "{waited} watched in this phase",
    }
}

reasons! {
    /// Why a step failed.
    pub enum FailReason {
        Recorded { text: String } => "{text}",
        NoLevels => "no method is configured for this step; add a FenceConfig that selects the node",
        ConfigUnusable { why: String } => "the node's FenceConfig cannot be used, so no device is called: {why}",
        ConfigChanged => "the configuration no longer has the method that was running",
        CallRefused { method: MethodName } => "{method}: the device refused; nothing was done",
        CallUnknown { method: MethodName } => "{method}: nobody knows whether the device acted; it does not count",
        StillOn { method: MethodName } => "{method}: the device took the command, and is still on",
        PowerUnknown { method: MethodName } => "{method}: the state could not be read back; it does not count",
        KubeletAnswers { method: MethodName } => "{method}: the device says off, and the node's kubelet answers; one of them is wrong, so nothing is believed: see whether the device's address and plug are this machine's",
        NotSteady { method: MethodName } => "{method}: the state was not steady for long enough",
        CannotTellHibernated { method: MethodName } => "{method}: the device cannot tell off from hibernated, and the machine was not seen running before; no proof",
        NotHealthyInTime { waited: Span } => "the node was not healthy {waited} after the power step",
        NotClean { why: String } => "the node is not clean: {why}",
        RestoreFailed { method: MethodName } => "{method}: the isolation could not be lifted",
        NetworkNeedsPerson => "the network isolation can only be lifted while the machine is off; switch it off or resume by hand",
        NoBoot => "the Node reports no boot, so no proof could name the life that it speaks of",
        ProofLost { class: Class } => "the {class} proof ended before anything was released by it",
    }
}

reasons! {
    /// Why a fence waits where it stands.
    pub enum WaitReason {
        VettingClosed => "a gate is closed, and nothing has been done yet",
        AwaitingSlot => "waiting for a slot of the budget",
        AwaitingNode => "waiting for a live read of the Node",
        AwaitingCall { method: MethodName } => "{method}: waiting for the device's answer",
        AwaitingReadBack => "waiting for the read-back",
        KubeletContradicts => "the device says off, and the node's kubelet answers; nothing is released before they agree: see whether the device's address and plug are this machine's",
        AwaitingPods => "waiting for a live list of the node's pods",
        AwaitingMark => "waiting for pods to be marked",
        AwaitingRemoval => "waiting for marked pods to be removed",
        AwaitingDetach => "waiting for volumes to be detached",
        GroupJoined { by: String } => "{by} came to share a claim with pods that are being released; they wait for it",
        DriverRefuses { error: String } => "the driver does not detach a volume: {error}",
        AwaitingHealth { left: Span } => "waiting for the node to be healthy, {left} left",
        AwaitingPowerAfter { left: Span } => "isolated; the power step follows in {left} unless the node is healthy",
        AwaitingOldDeadline { left: Span } => "a call of an earlier process, or one that nobody has answered for, may still be sent; waiting {left}",
        NothingToRelease => "isolated; no pod is left that the proofs cover",
        AwaitingTaint => "waiting for the Node's taints to change",
        AwaitingReturn { why: String } => "the node stays quarantined: {why}",
        HeardTooShort { left: Span } => "the machine was switched off, and its node looks well; it is let in when it has looked so for {left} more",
        BackingOff { left: Span } => "backing off, {left} left",
        HeldForPerson => "held: a person has to resume",
        PodsNameTheNode => "the Node is gone, but pods still name it; the machine stays off until they are gone",
        Closing => "writing the result",
        Stopped => "stopped by an admin",
    }
}
