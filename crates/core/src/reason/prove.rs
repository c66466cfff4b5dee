//! Why a proof ended, and what showed that a node lives.

reasons! {
    /// Why a proof no longer stands.
    pub enum ProofEnd {
        SignOfLife { sign: LifeSign } => "the node shows life ({sign}); nothing more is released by this proof",
        ReadOn => "the device says that the machine is on; nothing more is released by this proof",
        ReadUnfenced => "the provider no longer refuses the node; nothing more is released by this proof",
        PublishedAgain => "a volume was published to the node again; nothing more is released by this proof",
        OnIntended => "the machine is about to be switched on by us",
        LiftIntended => "the isolation is about to be lifted by us",
        AnotherNode => "the Node object was replaced by another of the same name; proofs of the old one release nothing",
    }
}

reasons! {
    /// What showed that a node lives.
    pub enum LifeSign {
        NewBoot => "a new boot",
        LeaseRenewed => "its lease was renewed",
        Heartbeat => "its Ready heartbeat moved",
    }
}
