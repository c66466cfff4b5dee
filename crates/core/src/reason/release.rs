//! Why a pod is not released.

reasons! {
    /// Why a pod is kept where it is.
    pub enum KeepReason {
        NoProof => "no proof in force covers the node or the pod's volumes",
        NotCovered { volume: String } => "no proof in force covers its volume {volume}",
        NoController => "nobody owns it, so nobody would start it elsewhere",
        DaemonSet => "a DaemonSet's pod stays on its node",
        StaticPod => "a static pod stays on its node",
        Completed => "it has run to its end",
        LocalVolume { volume: String } => "its volume {volume} is local to the node and cannot move",
        AfterTaint => "it was created after our taint; somebody tolerates it on purpose",
        NoOptIn => "storage alone cannot stop what it does over the network: it needs the label palisade.dev/fenced=true",
        NoClaim => "it has no claim, so a proof about storage says nothing about it",
        Unbound => "one of its claims has no volume yet",
        SharedVolume { volume: String } => "its volume {volume} is ReadWriteMany; a proof about storage cannot move its writers one by one",
        HostPath => "it mounts a path of the node, which no storage proof covers",
        InlineNetwork => "it mounts network storage without a claim, which no proof covers",
        Unhealthy { volume: String } => "its volume {volume} has no healthy copy; it waits for its node",
        HealthUnknown { volume: String } => "nobody knows whether its volume {volume} is healthy",
        MarkWouldRelease => "its owner replaces it as soon as it is marked, before the driver could cut the node off",
        DisruptionBudget => "its PodDisruptionBudget allows no disruption now",
        Paced { limit: u32 } => "{limit} pods were released lately, which is the limit",
        GroupHeld { by: String } => "it shares a claim with {by}, which may not be released",
        TooMuchToRecord { limit: u32 } => "the record of a fence holds no more than {limit} of these, and what cannot be recorded is not done; a person has to look",
        HeldByFinalizer => "it is removed but for a finalizer",
        UnknownVolume { volume: String } => "its volume {volume} could not be found",
    }
}
