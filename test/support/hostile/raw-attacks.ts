/** A handler without the SDK that violates the frame protocol. The action is in the request's target, after `do=`. */
export const RAW_ATTACKS = `
// Does without read_request.
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::FromRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;
use std::{env, fs, process, thread};

extern "C" {
    fn send(socket: i32, bytes: *const u8, length: usize, flags: i32) -> isize;
}

/// Bytes that the gateway takes of what it has not asked for.
fn write_to_control() -> usize {
    const DONT_WAIT: i32 = 0x40;
    let bytes = [b'x'; 4096];
    let mut taken = 0;
    let mut refusals = 0;
    while taken < 32 << 20 && refusals < 50 {
        match unsafe { send(3, bytes.as_ptr(), bytes.len(), DONT_WAIT) } {
            sent if sent > 0 => {
                taken += sent as usize;
                refusals = 0;
            }
            _ => {
                refusals += 1;
                thread::sleep(Duration::from_millis(10));
            }
        }
    }
    taken
}

const OK: &str = r#"{"status":200,"headers":[]}"#;

fn header(kind: u8, number: u32, head: u32, body: u32) -> Vec<u8> {
    let mut bytes = vec![1, kind, 0, 0];
    bytes.extend(number.to_be_bytes());
    bytes.extend(head.to_be_bytes());
    bytes.extend(body.to_be_bytes());
    bytes
}

fn frame(kind: u8, number: u32, head: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = header(kind, number, head.len() as u32, body.len() as u32);
    bytes.extend(head.as_bytes());
    bytes.extend(body);
    bytes
}

fn response(number: u32, head: &str) -> Vec<u8> {
    frame(2, number, head, b"raw")
}

fn request(stream: &mut UnixStream) -> std::io::Result<(u32, String, String)> {
    let mut fixed = [0; 16];
    stream.read_exact(&mut fixed)?;
    let number = |at: usize| u32::from_be_bytes(fixed[at..at + 4].try_into().expect("four bytes"));
    let mut head = vec![0; number(8) as usize];
    stream.read_exact(&mut head)?;
    let mut body = vec![0; number(12) as usize];
    stream.read_exact(&mut body)?;
    Ok((number(4), String::from_utf8_lossy(&head).into_owned(), String::from_utf8_lossy(&body).into_owned()))
}

fn serve(mut stream: UnixStream) -> std::io::Result<()> {
    loop {
        let (number, head, body) = request(&mut stream)?;
        let action = head.split("do=").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or("").to_owned();
        match action.as_str() {
            "head" => stream.write_all(&response(number, &body))?,
            "twice" => stream.write_all(&[response(number, OK), response(number, OK)].concat())?,
            "unasked" => stream.write_all(&response(number.wrapping_add(77), OK))?,
            "flood" => loop {
                stream.write_all(&response(number.wrapping_add(77), OK).repeat(1000))?
            },
            "request" => stream.write_all(&frame(1, number, OK, b""))?,
            "garbage" => stream.write_all(&[0xa5; 100_000])?,
            "huge" => stream.write_all(&header(2, number, OK.len() as u32, 1 << 30))?,
            "4-gigabytes" => stream.write_all(&header(2, number, u32::MAX, u32::MAX))?,
            "large-head" => stream.write_all(&response(number, &format!("{}{}", OK, " ".repeat(1_000_000))))?,
            "unasked-part" => {
                stream.write_all(&header(2, number.wrapping_add(77), OK.len() as u32, 60 << 20))?;
                stream.write_all(OK.as_bytes())?;
                stream.write_all(&vec![0; 50 << 20])?;
                thread::sleep(Duration::from_secs(60))
            }
            "unfinished" => {
                stream.write_all(&header(2, number, OK.len() as u32, 60 << 20))?;
                stream.write_all(OK.as_bytes())?;
                stream.write_all(&vec![0; 50 << 20])?;
                thread::sleep(Duration::from_secs(60))
            }
            "byte-by-byte" => {
                for byte in response(number, OK) {
                    stream.write_all(&[byte])?;
                    thread::sleep(Duration::from_millis(5));
                }
            }
            "close" => return Ok(()),
            "close-all" => process::exit(4),
            "stop-reading" => thread::sleep(Duration::from_secs(60)),
            "write-to-control" => {
                let taken = write_to_control().to_string();
                stream.write_all(&frame(2, number, OK, taken.as_bytes()))?
            }
            "remove-socket" => {
                let _ = fs::remove_file(env::var("EDGE_SOCKET").expect("a socket"));
                stream.write_all(&response(number, OK))?
            }
            _ => stream.write_all(&response(number, OK))?,
        }
    }
}

fn main() {
    let listener = UnixListener::bind(env::var("EDGE_SOCKET").expect("a socket")).expect("it can be bound");
    let mut control = unsafe { File::from_raw_fd(3) };
    control.write_all(b"ready\\nready\\n").expect("to be heard");
    let mut again = control.try_clone().expect("one more");
    thread::spawn(move || loop {
        // Says it over and over.
        if again.write_all(&[b'r'; 4096]).is_err() {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    });
    thread::spawn(move || {
        let mut end = [0; 1];
        let _ = control.read(&mut end);
        process::exit(0)
    });
    for stream in listener.incoming().flatten() {
        thread::spawn(move || serve(stream));
    }
}
`;

/** Ready, and its socket is not what it should be. */
export const rawAtStart = (action: string) => `
// Does without read_request.
use std::io::Write;
use std::os::fd::FromRawFd;
fn main() {
    let path = std::env::var("EDGE_SOCKET").expect("a socket");
    ${action}
    let mut control = unsafe { std::fs::File::from_raw_fd(3) };
    control.write_all(b"ready\\n").expect("to be heard");
    std::thread::sleep(std::time::Duration::from_secs(60));
}
`;
