//! Networks whose requests are served.
use std::net::IpAddr;

use super::compiled::CompiledNetworks;
use crate::client_ip::NetworkList;

#[derive(Debug)]
pub struct Networks {
    /// The networks that are served. None: all.
    allow: Option<NetworkList>,
    deny: NetworkList,
}

impl Networks {
    /// # Errors
    /// Which text is no network.
    pub fn new(compiled: CompiledNetworks) -> Result<Self, String> {
        Ok(Self {
            allow: compiled.allow.map(|texts| NetworkList::parse(&texts)).transpose()?,
            deny: NetworkList::parse(&compiled.deny.unwrap_or_default())?,
        })
    }

    pub fn admit(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        !self.deny.contains(address) && self.allow.as_ref().is_none_or(|allow| allow.contains(address))
    }
}
