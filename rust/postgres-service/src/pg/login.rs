//! The beginning of a connection: settings of the session, and the password.
use std::collections::HashMap;

use bytes::BytesMut;
use postgres_protocol::authentication::{md5_hash, sasl};
use postgres_protocol::message::frontend;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::connect::Stream;
use super::failure::Failure;
use super::messages::{Members, Split, lossy, split, too_long, unexpected, unknown_authentication};
use super::target::Target;

/// Fixes the format of statements and values against settings of the server, the database and the role.
const SESSION: &str = "-c standard_conforming_strings=on -c TimeZone=UTC -c DateStyle=ISO -c IntervalStyle=postgres \
                       -c bytea_output=hex -c extra_float_digits=1";
/// Far more than a server says before it is ready.
const MAX_LOGIN_BYTES: usize = 1024 * 1024;

/// What is known of a session when the server is ready.
#[derive(Default)]
pub struct Session {
    /// The settings that the server reports.
    pub settings: HashMap<Vec<u8>, Vec<u8>>,
    /// The key for cancel requests.
    pub key: Vec<u8>,
    /// The status of the transaction.
    pub status: u8,
    /// What has come after that.
    pub rest: Vec<u8>,
}

/// Logs in, and waits until the server is ready.
pub async fn log_in(stream: &mut Stream, target: &Target) -> Result<Session, Failure> {
    let config = &target.config;
    let mut out = BytesMut::new();
    let parameters = [
        ("user", &*config.username),
        ("database", &config.database),
        ("application_name", "edge-gateway"),
        ("options", SESSION),
        ("client_encoding", "UTF8"),
    ];
    frontend::startup_message(parameters, &mut out)?;
    let mut login =
        Login { username: &config.username, password: config.password.as_deref().unwrap_or(""), scram: None };
    let mut session = Session::default();
    let mut received = 0;
    let limit = target.message_limit.min(MAX_LOGIN_BYTES);
    let mut bytes = Vec::with_capacity(4096);
    loop {
        if !out.is_empty() {
            stream.write_all(&out.split()).await?;
            stream.flush().await?;
        }
        match stream.read_buf(&mut bytes).await? {
            0 => return Err(Failure::Closed),
            count => received += count,
        }
        let mut taken = 0;
        loop {
            match split(&bytes[taken..], limit)? {
                Split::Incomplete { .. } => break,
                Split::TooLong { bytes } if bytes > target.message_limit => {
                    return Err(too_long(bytes, target.message_limit));
                }
                Split::TooLong { .. } => return Err(Failure::Garbled),
                Split::Message { tag, body, bytes: count } => {
                    if tag == b'Z' {
                        session.status = *body.first().ok_or(Failure::Garbled)?;
                        bytes.drain(..taken + count);
                        session.rest = bytes;
                        return if login.scram.is_some() { Err(Failure::Garbled) } else { Ok(session) };
                    }
                    on_message(&mut session, &mut login, tag, body, &mut out)?;
                    taken += count;
                }
            }
        }
        bytes.drain(..taken);
        if received > MAX_LOGIN_BYTES {
            return Err(Failure::Garbled);
        }
    }
}

fn on_message(
    session: &mut Session,
    login: &mut Login<'_>,
    tag: u8,
    body: &[u8],
    out: &mut BytesMut,
) -> Result<(), Failure> {
    match tag {
        b'R' => login.on_request(body, out),
        b'S' => {
            let mut members = Members(body);
            let (Some(name), Some(value)) = (members.text(), members.text()) else { return Err(Failure::Garbled) };
            session.settings.insert(name.to_vec(), value.to_vec());
            Ok(())
        }
        b'K' => {
            session.key = body.to_vec();
            Ok(())
        }
        _ => unexpected(tag, body).map_or(Ok(()), Err),
    }
}

struct Login<'a> {
    username: &'a str,
    password: &'a str,
    /// The login by SCRAM, until the server has proven that it knows the password.
    scram: Option<sasl::ScramSha256>,
}

impl Login<'_> {
    fn on_request(&mut self, body: &[u8], out: &mut BytesMut) -> Result<(), Failure> {
        let mut members = Members(body);
        let code = members.i32();
        match code {
            Some(0) if self.scram.is_none() => Ok(()),
            Some(0) => Err(Failure::Other("SASL: the server has not proven that it knows the password".to_owned())),
            Some(3) => Ok(frontend::password_message(self.password.as_bytes(), out)?),
            Some(5) => {
                let &[a, b, c, d] = members.0 else { return Err(Failure::Garbled) };
                let hash = md5_hash(self.username.as_bytes(), self.password.as_bytes(), [a, b, c, d]);
                Ok(frontend::password_message(hash.as_bytes(), out)?)
            }
            Some(10) => self.begin_scram(members, out),
            Some(11) => {
                let exchange = self.scram.as_mut().ok_or(Failure::Garbled)?;
                exchange.update(members.0).map_err(|error| sasl_failure(&error))?;
                Ok(frontend::sasl_response(exchange.message(), out)?)
            }
            Some(12) => {
                let mut exchange = self.scram.take().ok_or(Failure::Garbled)?;
                exchange.finish(members.0).map_err(|error| sasl_failure(&error))
            }
            code => Err(unknown_authentication(code)),
        }
    }

    fn begin_scram(&mut self, mut members: Members<'_>, out: &mut BytesMut) -> Result<(), Failure> {
        let mut mechanisms = Vec::new();
        loop {
            match members.text() {
                None => return Err(Failure::Garbled),
                Some([]) => break,
                Some(mechanism) => mechanisms.push(mechanism),
            }
        }
        if !mechanisms.contains(&sasl::SCRAM_SHA_256.as_bytes()) {
            let offered: Vec<_> = mechanisms.into_iter().map(lossy).collect();
            let offered = offered.join(", ");
            return Err(Failure::Other(format!("SASL: only SCRAM-SHA-256 is supported, and it offers {offered}")));
        }
        if self.password.is_empty() {
            return Err(Failure::NoPassword);
        }
        let exchange = sasl::ScramSha256::new(self.password.as_bytes(), sasl::ChannelBinding::unsupported());
        frontend::sasl_initial_response(sasl::SCRAM_SHA_256, exchange.message(), out)?;
        self.scram = Some(exchange);
        Ok(())
    }
}

fn sasl_failure(error: &std::io::Error) -> Failure {
    Failure::Other(format!("SASL: {error}"))
}
