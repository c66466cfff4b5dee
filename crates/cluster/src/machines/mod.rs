//! Machines and what hangs on them: power, links, processes, kubelets, BMCs, PDUs.
//!
//! | file | is |
//! |---|---|
//! | [`machine`] | power, boots and links |
//! | [`process`] | a pod's process and its writes |
//! | [`program`] | what a process does besides, from the images of a world |
//! | [`kubelet`] | what speaks to the API for a machine |
//! | [`bmc`] | what switches a machine, honest or not |
//! | [`redfish`] | the words in which a BMC is asked |
//! | [`pdu`] | outlets, and machines with two supplies |

pub mod bmc;
pub mod kubelet;
pub mod machine;
pub mod pdu;
pub mod process;
pub mod program;
pub mod redfish;
