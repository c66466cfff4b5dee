//! Request: a message that is the question of exactly one method.

use prost::Message;

/// A question, which names the method that it is sent to and the answer that it gets.
pub trait Request: Message + Default + std::fmt::Debug + 'static {
    /// The method, as gRPC has it in a path: `/csi.v1.Identity/Probe`.
    const PATH: &'static str;
    /// What it is answered with.
    type Reply: Message + Default + std::fmt::Debug + 'static;
}

/// `GetPluginInfoRequest => Identity/GetPluginInfo, GetPluginInfoResponse` for each method of a package.
macro_rules! methods {
    ($package:literal: $($request:ident => $service:literal / $method:literal, $reply:ident;)*) => {
        $(impl $crate::Request for $request {
            const PATH: &'static str = concat!("/", $package, ".", $service, "/", $method);
            type Reply = $reply;
        })*
    };
}
pub(crate) use methods;
