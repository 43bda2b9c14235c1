/** A handler, written with the SDK, that performs attacks: the one in the query parameter `do`. */

export const ATTACKS = `
use rust_edge_gateway_sdk::prelude::*;
use std::ffi::CString;
use std::fs;
use std::hint::black_box;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::UnixStream;
use std::{process, thread, time::Duration};

extern "C" {
    fn fork() -> i32;
    fn setsid() -> i32;
    fn kill(pid: i32, signal: i32) -> i32;
    fn ptrace(request: i64, pid: i32, address: usize, data: usize) -> i64;
    fn memfd_create(name: *const std::os::raw::c_char, flags: u32) -> i32;
    fn mount(source: *const std::os::raw::c_char, target: *const std::os::raw::c_char, kind: usize, flags: u64, data: usize) -> i32;
    fn setuid(uid: u32) -> i32;
    fn getuid() -> u32;
    fn syscall(number: i64, ...) -> i64;
}

/// Of a thread, not of the process.
const EXIT: i64 = if cfg!(target_arch = "x86_64") { 60 } else { 93 };

fn spin() -> ! {
    let mut i = 0u64;
    loop {
        i = black_box(i.wrapping_add(1));
    }
}

fn recurse(depth: u64) -> u64 {
    let frame = black_box([depth; 64]);
    black_box(recurse(frame[3] + 1) + frame[7])
}

/// Memory that is really there.
fn take(megabytes: usize) -> Vec<u8> {
    let mut bytes = vec![0u8; megabytes << 20];
    for at in (0..bytes.len()).step_by(4096) {
        bytes[at] = 1;
    }
    black_box(bytes)
}

fn in_child(what: impl FnOnce()) {
    if unsafe { fork() } == 0 {
        what();
        process::exit(0)
    }
}

fn last_error() -> String {
    std::io::Error::last_os_error().to_string()
}

struct PanicsWhenDropped;
impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        panic!("once more")
    }
}

/// Those of the places in the body, one in each line, for which this worked.
fn those(req: &Request, works: impl Fn(&str) -> bool) -> Response {
    let body = req.body.clone().unwrap_or_default();
    Response::ok(body.lines().filter(|place| works(place)).collect::<Vec<_>>())
}

fn connects(place: &str) -> bool {
    if let Some(name) = place.strip_prefix("abstract:") {
        let address = std::os::unix::net::SocketAddr::from_abstract_name(name.as_bytes());
        return address.and_then(|address| UnixStream::connect_addr(&address)).is_ok();
    }
    match place.parse::<SocketAddr>() {
        Ok(address) => TcpStream::connect_timeout(&address, Duration::from_millis(500)).is_ok(),
        Err(_) => UnixStream::connect(place).is_ok(),
    }
}

fn writes(place: &str) -> bool {
    let opened = fs::OpenOptions::new().append(true).open(place).is_ok();
    let created = fs::write(format!("{place}/created"), "by a handler").is_ok();
    opened || created || fs::remove_file(place).is_ok() || fs::rename(place, format!("{place}-moved")).is_ok()
}

fn handle(req: Request) -> Response {
    let name = req.query_param("do").map(String::as_str).unwrap_or("");
    match name {
        "spin" => spin(),
        "spin-in-thread" => {
            thread::spawn(|| spin());
        }
        "spin-in-sessions" => {
            for _ in 0..8 {
                in_child(|| {
                    unsafe { setsid() };
                    spin()
                });
            }
        }
        "recurse" => return Response::text(200, recurse(0).to_string()),
        "memory-at-once" => return Response::text(200, take(1024).len().to_string()),
        "memory-slowly" => {
            let mut taken = Vec::new();
            for _ in 0..64 {
                taken.push(take(16));
                thread::sleep(Duration::from_millis(20));
            }
            spin()
        }
        "memory-in-children" => {
            for _ in 0..16 {
                in_child(|| {
                    let taken = take(64);
                    thread::sleep(Duration::from_secs(60));
                    drop(taken)
                });
            }
        }
        "memory-in-files" => {
            let tmp = std::env::temp_dir();
            let mut written = 0;
            let megabyte = vec![1u8; 1 << 20];
            for file in 0..32 {
                let Ok(mut file) = fs::File::create(tmp.join(file.to_string())) else { break };
                while written < 1024 && file.write_all(&megabyte).is_ok() {
                    written += 1;
                }
            }
            for file in 0..32 {
                let _ = fs::remove_file(tmp.join(file.to_string()));
            }
            return Response::text(200, written.to_string());
        }
        "keep-in-files" => {
            let tmp = std::env::temp_dir();
            let megabytes = vec![1u8; 8 << 20];
            let made = (0..16).take_while(|file| fs::write(tmp.join(format!("kept-{file}")), &megabytes).is_ok());
            return Response::text(200, (made.count() * 8).to_string());
        }
        "memory-in-memfd" => {
            let name = CString::new("m").expect("a name");
            let file = unsafe { memfd_create(name.as_ptr(), 0) };
            return Response::text(200, if file < 0 { last_error() } else { "made".to_owned() });
        }
        "fork-bomb" => loop {
            in_child(|| loop {
                unsafe { fork() };
            });
        },
        "threads" => {
            for number in 0..10_000 {
                let started = thread::Builder::new().stack_size(16 * 1024).spawn(|| thread::sleep(Duration::from_secs(5)));
                if started.is_err() {
                    return Response::text(200, number.to_string());
                }
            }
        }
        "files" => {
            let mut files = Vec::new();
            while files.len() < 100_000 {
                match fs::File::open("/dev/null") {
                    Ok(file) => files.push(file),
                    Err(_) => break,
                }
            }
            return Response::text(200, files.len().to_string());
        }
        "print-lines" => {
            thread::spawn(|| loop {
                println!("a line that says nothing, and one more of them");
            });
        }
        "print-without-end" => {
            thread::spawn(|| loop {
                let _ = std::io::stderr().write_all(&[b'x'; 65536]);
            });
        }
        "megabytes" => return Response::text(200, "x".repeat(req.query_param_as("mb").unwrap_or(1) << 20)),
        "panic" => panic!("on purpose"),
        "panic-in-thread" => {
            let _ = thread::spawn(|| panic!("in a thread")).join();
        }
        "panic-twice" => {
            let _bomb = PanicsWhenDropped;
            panic!("on purpose")
        }
        "exit" => process::exit(0),
        "abort" => process::abort(),
        "headers" => {
            let (name, value) = req.body.as_deref().and_then(|text| text.split_once(':')).unwrap_or(("", ""));
            return Response::text(200, "headers").with_header(name, value);
        }
        "kill-all" => return Response::text(200, unsafe { kill(-1, 9) }.to_string()),
        "kill-parent" => {
            let results: Vec<i32> = (1..200).filter(|pid| !std::path::Path::new(&format!("/proc/self/task/{pid}")).exists()).map(|pid| unsafe { kill(pid, 9) }).collect();
            return Response::text(200, results.iter().filter(|&&result| result == 0).count().to_string());
        }
        "ptrace" => {
            let attached = (1..5000).filter(|&pid| unsafe { ptrace(16, pid, 0, 0) } == 0).count();
            return Response::text(200, attached.to_string());
        }
        "mount" => {
            let place = CString::new("/tmp").expect("a path");
            let done = unsafe { mount(place.as_ptr(), place.as_ptr(), 0, 4096, 0) };
            return Response::text(200, if done == 0 { "mounted".to_owned() } else { last_error() });
        }
        "root" => return Response::text(200, unsafe { (setuid(0) == 0 && getuid() == 0).to_string() }),
        "processes" => {
            let names = fs::read_dir("/proc").expect("a /proc").flatten().map(|entry| entry.file_name());
            let pids = names.filter_map(|name| name.to_str()?.parse::<u32>().ok());
            return Response::ok(pids.filter(|&pid| pid != process::id()).collect::<Vec<_>>());
        }
        "environment" => return Response::ok(std::env::vars().map(|(name, _)| name).collect::<Vec<_>>()),
        "list" => {
            let entries = |place: &str| fs::read_dir(place).map(|found| found.flatten().map(|entry| entry.path()).collect::<Vec<_>>());
            return Response::ok(entries(req.query_param("at").expect("a place")).unwrap_or_default());
        }
        "read" => return those(&req, |place| fs::read(place).is_ok() || fs::read_dir(place).is_ok()),
        "write" => return those(&req, writes),
        "connect" => return those(&req, connects),
        "why-not" => {
            let tried = TcpStream::connect(req.query_param("at").expect("an address").as_str());
            return Response::text(200, tried.map_or_else(|error| error.to_string(), |_| "connected".to_owned()));
        }
        "memory-without-first-thread" => {
            // From here on its first thread has ended.
            if unsafe { fork() } == 0 {
                thread::spawn(|| {
                    let held = black_box(vec![1u8; 200 << 20]);
                    thread::sleep(Duration::from_secs(60));
                    drop(held);
                });
                unsafe { syscall(EXIT, 0) };
            }
        }
        "many-files" => {
            let tmp = std::env::temp_dir();
            let name = "x".repeat(200);
            let made = (0..1_000_000).take_while(|number| fs::File::create(tmp.join(format!("{name}{number}"))).is_ok());
            return Response::text(200, made.count().to_string());
        }
        "remove-socket" => return Response::text(200, fs::remove_file(std::env::var("EDGE_SOCKET").expect("a socket")).is_ok().to_string()),
        "read-body" => return Response::text(200, req.body_bytes().len().to_string()),
        "sleep" => thread::sleep(Duration::from_millis(req.query_param_as("ms").unwrap_or(0))),
        "wait" => while fs::metadata(std::env::temp_dir().join("go-on")).is_err() { thread::sleep(Duration::from_millis(1)) },
        "nothing" => {}
        _ => return Response::text(400, format!("no such action: {name}")),
    }
    Response::text(200, "done")
}
handler_loop!(handle);
`;

/** Never ready: what it does instead. */
export const atStart = (action: string) => `
use rust_edge_gateway_sdk::prelude::*;
fn handle(_: Request) -> Response { Response::ok("ready") }
mod real { use super::*; handler_loop!(handle); pub fn run() { main() } }
fn main() {
    if std::env::var("NO_SUCH_VARIABLE").is_ok() { real::run() }
    ${action}
}
`;
