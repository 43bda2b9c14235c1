//! What the gateway gives a handler for its services: where the actor host listens, and a token.

use std::sync::OnceLock;
use std::time::Duration;

/// The actor host gives a deadline to calls that name none. How long that is taken to be when the gateway has not said.
const ASSUMED_DEADLINE: Duration = Duration::from_secs(60);

/// What the environment says.
pub struct Access {
    pub socket: String,
    pub token: String,
    /// The deadline the actor host gives to calls that name none.
    pub default_deadline: Duration,
}

/// `None` if this process was started without access to services.
pub fn get() -> Option<&'static Access> {
    static ACCESS: OnceLock<Option<Access>> = OnceLock::new();
    ACCESS.get_or_init(read).as_ref()
}

/// The path of a socket that lies beside that of the actor host.
pub fn beside(name: &str) -> String {
    let folder = get().and_then(|access| access.socket.rsplit_once('/')).map_or("", |(folder, _)| folder);
    format!("{folder}/{name}")
}

fn read() -> Option<Access> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let default_deadline = variable("EDGE_SERVICES_TIMEOUT_MS").and_then(|ms| ms.parse().ok());
    Some(Access {
        socket: variable("EDGE_SERVICES_SOCKET")?,
        token: variable("EDGE_SERVICES_TOKEN")?,
        default_deadline: default_deadline.map_or(ASSUMED_DEADLINE, Duration::from_millis),
    })
}
