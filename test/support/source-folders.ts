/** A handler of several files: shared modules, nested ones, `#[path]`, a template and bytes. */
import type { FileContents } from '../../src/model/source-files.js';

/** The path of its code. */
export const ENTRY = 'src/hello.rs';

/** Its code. @param name tells it from others */
export function helloOf(name: string): string {
  return `use rust_edge_gateway_sdk::prelude::*;
mod common;
#[path = "../shared/greet.rs"]
mod greet;
const PAGE: &str = include_str!("../page.html");
const LOGO: &[u8] = include_bytes!("logo.bin");
fn handle(_req: Request) -> Response {
    let parts = ["${name}", common::words::name(), greet::hello(), PAGE.trim()];
    Response::text(200, format!("{} {}", parts.join(" "), LOGO.len()))
}
handler_loop!(handle);
`;
}

/** The files beside it. */
export const BESIDE: FileContents = {
  'page.html': '<p>\n',
  'shared/greet.rs': 'pub fn hello() -> &\'static str {\n    "hello"\n}\n',
  'src/common.rs': 'pub mod words;\n',
  'src/common/words.rs': 'pub fn name() -> &\'static str {\n    "ada"\n}\n',
  'src/logo.bin': { base64: Buffer.from([0xff, 0, 1]).toString('base64') },
};

/** What it answers. */
export function answerOf(name: string): string {
  return `${name} ada hello <p> 3`;
}
