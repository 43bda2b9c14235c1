/** Crates whose build scripts and macros attack the machine that builds them. */
import type { TestCrate } from '../../support/crate-registry.js';

/** What is tried: all of it has to fail. */
export interface Targets {
  readonly read: readonly string[];
  readonly write: readonly string[];
  /** Addresses to connect to. */
  readonly tcp: readonly string[];
  /** Unix sockets to connect to; those that begin with @ have no file. */
  readonly unix: readonly string[];
  /** Processes to end. */
  readonly kill: readonly number[];
}

/** So many lines a report has. */
export function attempts({ read, write, tcp, unix, kill }: Targets): number {
  return read.length + write.length + tcp.length + unix.length + kill.length + 1;
}

function rustText(text: string): string {
  return JSON.stringify(text).replace(/\\u([0-9a-f]{4})/g, '\\u{$1}');
}

/** A function that tries everything, and tells of each attempt in a line. */
function report({ read, write, tcp, unix, kill }: Targets): string {
  const list = (items: readonly string[]) => `[${items.map(rustText).join(', ')}] as [&str; ${items.length}]`;
  return `
use std::{env, fs, io, net::{TcpStream, ToSocketAddrs}, os::{linux::net::SocketAddrExt, unix::net::{SocketAddr, UnixStream}}, process::Command, time::Duration};
fn tell<T>(what: &str, result: io::Result<T>) -> String {
    match result { Ok(_) => format!("REACHED {what}"), Err(error) => format!("refused {what}: {error}") }
}
fn unix(path: &str) -> io::Result<UnixStream> {
    match path.strip_prefix('@') {
        Some(name) => UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?),
        None => UnixStream::connect(path),
    }
}
fn kill(pid: &str) -> io::Result<()> {
    let done = Command::new("/bin/sh").args(["-c", "kill -9 $0", pid]).output()?;
    if done.status.success() { Ok(()) } else { Err(io::Error::other(String::from_utf8_lossy(&done.stderr).trim().to_string())) }
}
fn report() -> String {
    let mut lines = Vec::new();
    for path in ${list(read)} { lines.push(tell(path, fs::read(path))) }
    for path in ${list(write)} { lines.push(tell(path, fs::create_dir_all(std::path::Path::new(path).parent().unwrap()).and_then(|_| fs::write(path, "mine")))) }
    for address in ${list(tcp)} { lines.push(tell(address, TcpStream::connect_timeout(&address.parse().unwrap(), Duration::from_secs(2)))) }
    for path in ${list(unix)} { lines.push(tell(path, unix(path))) }
    for pid in ${list(kill.map(String))} { lines.push(tell(pid, kill(pid))) }
    lines.push(tell("name server", "example.org:80".to_socket_addrs()));
    lines.push(format!("variables {}", env::vars().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("|")));
    lines.join("\n")
}
`;
}

/** Spawns processes that want to outlive it: in sessions of their own, orphaned, without streams and environment. */
const DAEMONS = `
/// The folder of cargo's output.
fn target() -> String { std::env::var("CARGO_TARGET_DIR").unwrap() }
fn daemons() {
    for script in ["setsid sleep 1000 &", "(setsid sh -c 'sleep 1000 & sleep 1000 & wait' &) &", "setsid env -i sleep 1000 > /dev/null 2>&1 < /dev/null &"] {
        std::process::Command::new("/bin/sh").args(["-c", script]).status().unwrap();
    }
}
`;

/** Its build script tries what is to fail, and says in its panic how it went. */
export function lookingCrate(version: string, targets: Targets): TestCrate {
  const build = `${report(targets)}\nfn main() { panic!("REPORT\\n{}\\nEND", report()) }`;
  return { name: 'edge-attack-look', version, files: { 'build.rs': build } };
}

/** Build scripts that take all they can get. Those that end say in their panic how far they came. */
export function greedyCrates(version: string): TestCrate[] {
  const scripts: Record<string, string> = {
    never: 'fn main() { daemons(); loop { std::thread::sleep(std::time::Duration::from_secs(1)) } }',
    fork: `fn main() {
      for count in 0.. {
        if let Err(error) = std::process::Command::new("sleep").arg("1000").stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn() { panic!("forked {count} times, then: {error}") }
      }
    }`,
    disk: 'fn main() { for at in 0u64.. { std::fs::write(format!("{}/{at}", target()), vec![7u8; 20 << 20]).unwrap(); } }',
    print: 'fn main() { let line = "x".repeat(1 << 16); loop { println!("{line}"); eprintln!("{line}"); } }',
    memory: `fn main() {
      if std::env::var("CHILD").is_err() {
        for _ in 0..8 { std::process::Command::new(std::env::current_exe().unwrap()).env("CHILD", "1").spawn().unwrap(); }
      }
      let mut all = Vec::new();
      loop { all.push(vec![7u8; 8 << 20]); std::thread::sleep(std::time::Duration::from_millis(50)); }
    }`,
    folders: `fn main() {
      let full = (0u64..).find_map(|at| std::fs::write(format!("/tmp/{at}"), vec![7u8; 8 << 20]).err()).unwrap();
      std::env::set_current_dir(target()).unwrap();
      for _ in 0..3000 { std::fs::create_dir("deep-deep").unwrap(); std::env::set_current_dir("deep-deep").unwrap(); }
      std::os::unix::fs::symlink("/usr", "link").unwrap();
      std::process::Command::new("chmod").args(["000", &format!("{}/deep-deep", target())]).status().unwrap();
      panic!("full: {full}; deep enough")
    }`,
  };
  return Object.entries(scripts).map(([what, script]) => ({
    name: `edge-attack-${what}`,
    version,
    files: { 'build.rs': `#![allow(dead_code)]${DAEMONS}${script}` },
  }));
}

/**
 * Builds, and leaves traps: daemons, and files that tools would obey if they looked where they must not. Its macros
 * attack.
 */
export function trapCrate(version: string, targets: Targets): TestCrate {
  const build = `${DAEMONS}
fn main() {
    daemons();
    let target = target();
    let wrapper = format!("[build]\\nrustc-wrapper = \\"{target}/wrapper\\"\\n");
    std::fs::create_dir_all(format!("{target}/.cargo")).unwrap();
    std::fs::write(format!("{target}/.cargo/config.toml"), wrapper).unwrap();
    std::fs::write(format!("{target}/rustc-args.json"), "[\\"--print\\", \\"sysroot\\"]").unwrap();
    std::os::unix::fs::symlink("/etc", format!("{target}/etc")).unwrap();
    println!("cargo:rustc-link-search=native=/etc");
}`;
  const macros: Record<string, string> = {
    look: 'format!("compile_error!({:?});", format!("REPORT\\n{}\\nEND", report())).parse().unwrap()',
    link: 'std::os::unix::fs::symlink("/etc/passwd", "../handler").unwrap(); std::process::exit(0)',
    outside_link:
      'std::os::unix::fs::symlink("../../../../../../../etc/passwd", "../handler").unwrap(); std::process::exit(0)',
    names:
      'std::fs::write("../other", "x").unwrap(); std::fs::hard_link("../other", "../handler").unwrap(); std::process::exit(0)',
    folder: 'std::fs::create_dir("../handler").unwrap(); std::process::exit(0)',
    pipe: 'std::process::Command::new("mkfifo").arg("../handler").status().unwrap(); std::process::exit(0)',
    hole: 'std::fs::File::create("../handler").unwrap().set_len(900 << 20).unwrap(); std::process::exit(0)',
    nothing: 'std::process::exit(0)',
    abort: 'std::process::abort()',
    leave: 'daemons(); proc_macro::TokenStream::new()',
    forge:
      'eprintln!("{}", r#"{"$message_type":"diagnostic","level":"error","message":"forged \\u0000 \\ud800","spans":[null,{"line_start":"x","is_primary":true,"file_name":"handler.rs"}],"rendered":"forged \\u0000 \\ud800"}"#); std::process::exit(1)',
    cargo:
      'println!("{}", r#"{"reason":"compiler-artifact","package_id":7}"#); proc_macro::TokenStream::new()',
  };
  const library = Object.entries(macros).map(
    ([name, body]) =>
      `#[proc_macro] pub fn ${name}(_: proc_macro::TokenStream) -> proc_macro::TokenStream { ${body} }`,
  );
  return {
    name: 'edge-attack-traps',
    version,
    macro: true,
    files: { 'build.rs': build, 'src/lib.rs': [report(targets), DAEMONS, ...library].join('\n') },
  };
}
