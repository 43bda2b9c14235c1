//! Accepts connections, and gives each to the thread that has the fewest.
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::{IpAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use serde_json::json;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;

use crate::event_loop::ThreadHandle;
use crate::http::refuse_connection;
use crate::request::RequestIds;
use crate::supervisor::Supervisor;

/// Connections that the kernel keeps until they are accepted. Of a burst beyond that, it drops or resets some.
const BACKLOG: libc::c_int = 4096;
/// Share of the file descriptors for connections; the rest is for handlers and files.
const SHARE_OF_DESCRIPTORS: f64 = 0.8;
/// Without a descriptor for one more connection, the front tries again after this.
const RETRY: Duration = Duration::from_millis(100);

pub struct Acceptor {
    threads: Rc<[ThreadHandle]>,
    limit: usize,
    request_ids: RequestIds,
    supervisor: Supervisor,
    /// Connections refused, by status.
    refused: RefCell<BTreeMap<u16, u64>>,
    stopped: watch::Sender<bool>,
    /// Given up for a moment when there is no other descriptor, to close a connection instead of leaving its client
    /// waiting.
    spare: RefCell<Option<File>>,
}

impl Acceptor {
    /// # Errors
    /// Those of the system.
    pub fn new(threads: Rc<[ThreadHandle]>, connections_limit: usize, supervisor: Supervisor) -> io::Result<Rc<Self>> {
        Ok(Rc::new(Self {
            threads,
            limit: connections_limit.min(descriptors_for_connections()),
            request_ids: RequestIds::new()?,
            supervisor,
            refused: RefCell::default(),
            stopped: watch::Sender::new(false),
            spare: RefCell::new(Some(spare()?)),
        }))
    }

    /// Connections refused, by status.
    pub fn refused(&self) -> BTreeMap<u16, u64> {
        self.refused.borrow().clone()
    }

    /// Connections that are open.
    pub fn connections(&self) -> usize {
        self.threads.iter().map(ThreadHandle::connections).sum()
    }

    /// Makes the socket listen. The future accepts connections until `stop`.
    ///
    /// # Errors
    /// Those of the system, such as another listener at the same address.
    pub fn listen(self: &Rc<Self>, socket: OwnedFd, is_secure: bool) -> io::Result<impl Future<Output = ()> + use<>> {
        // SAFETY: takes numbers only, and the socket is open.
        if unsafe { libc::listen(socket.as_raw_fd(), BACKLOG) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let listener = TcpListener::from(socket);
        listener.set_nonblocking(true)?;
        // SAFETY: the listener keeps its descriptor open, and the same one, as long as it is registered.
        let listener = unsafe { AsyncFd::register_with_interest(listener, Interest::READABLE) }?;
        let acceptor = self.clone();
        let mut stopped = self.stopped.subscribe();
        Ok(async move {
            tokio::select! {
                biased;
                _ = stopped.wait_for(|is_stopped| *is_stopped) => {}
                () = acceptor.accept(&listener, is_secure) => {}
            }
            // Those that the kernel has accepted for us. The next front, if there is one, may take them as well.
            for _ in 0..=BACKLOG {
                let Ok((connection, peer)) = listener.get_ref().accept() else { break };
                acceptor.serve(connection, peer.ip(), is_secure);
            }
        })
    }

    pub fn stop(&self) {
        self.stopped.send_replace(true);
    }

    async fn accept(&self, listener: &AsyncFd<TcpListener>, is_secure: bool) {
        loop {
            // Others have their turn, however many connections there are.
            tokio::task::consume_budget().await;
            let Ok(mut ready) = listener.readable().await else { return };
            match listener.get_ref().accept() {
                Ok((connection, peer)) => self.serve(connection, peer.ip(), is_secure),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready.clear_ready(),
                Err(error) if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => {
                    let closed = self.close_one(listener.get_ref(), &error).await;
                    // Only then none is left: without a descriptor even for one, they still wait.
                    if closed.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
                        ready.clear_ready();
                    }
                }
                Err(error) if is_of_client(&error) => {}
                Err(_) => tokio::time::sleep(RETRY).await,
            }
        }
    }

    fn serve(&self, connection: TcpStream, peer: IpAddr, is_secure: bool) {
        if self.connections() >= self.limit {
            if is_secure {
                // There is no answer before a handshake, which costs more than this one may.
                *self.refused.borrow_mut().entry(503).or_default() += 1;
                return;
            }
            let status = refuse_connection(connection, self.limit, &self.request_ids.next());
            *self.refused.borrow_mut().entry(status).or_default() += 1;
            return;
        }
        // Fails for a connection that the client has closed.
        if connection.set_nonblocking(true).is_err() || connection.set_nodelay(true).is_err() {
            return;
        }
        if let Some(thread) = self.threads.iter().min_by_key(|thread| thread.connections()) {
            thread.serve(connection, peer, is_secure);
        }
    }

    /// Closes a connection that has no descriptor. An accept without a descriptor does not tell whether there is one:
    /// the kernel looks for the descriptor first.
    async fn close_one(&self, listener: &TcpListener, error: &io::Error) -> io::Result<()> {
        let text = "out of file descriptors; new connections are closed. Raise the limit of open files (ulimit -n)";
        self.supervisor.warn_rarely(json!({ "error": error.to_string() }), text);
        self.spare.take();
        // Closed at once.
        let closed = listener.accept().map(drop);
        *self.spare.borrow_mut() = spare().ok();
        tokio::task::yield_now().await;
        if self.spare.borrow().is_none() {
            tokio::time::sleep(RETRY).await;
        }
        closed
    }
}

/// Whether the connection that was to be accepted has failed already: accept(2) passes its errors on.
fn is_of_client(error: &io::Error) -> bool {
    let errors = [
        libc::ECONNABORTED,
        libc::EPROTO,
        libc::ENOPROTOOPT,
        libc::EOPNOTSUPP,
        libc::ENETDOWN,
        libc::ENETUNREACH,
        libc::EHOSTDOWN,
        libc::EHOSTUNREACH,
        libc::ENONET,
        libc::EINTR,
    ];
    error.raw_os_error().is_some_and(|number| errors.contains(&number))
}

fn spare() -> io::Result<File> {
    File::open("/dev/null")
}

fn descriptors_for_connections() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: there is room for the result.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } < 0 {
        return usize::MAX;
    }
    (limit.rlim_cur as f64 * SHARE_OF_DESCRIPTORS) as usize
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use tokio::runtime::Builder;

    use super::*;

    fn close_one(listener: &TcpListener) -> io::Result<()> {
        let acceptor = Acceptor::new(Rc::new([]), 1, crate::supervisor::channel().0)?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(acceptor.close_one(listener, &io::Error::from_raw_os_error(libc::EMFILE)))
    }

    #[test]
    fn a_connection_without_a_descriptor_is_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        assert_eq!(close_one(&listener).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        close_one(&listener).unwrap();
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
    }

    #[test]
    fn a_failure_to_close_one_is_not_the_end_of_the_queue() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let does_not_listen = TcpListener::from(OwnedFd::from(socket));
        assert_ne!(close_one(&does_not_listen).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
}
