/**
 * What crates need of a machine besides Rust, and builds do not have: C libraries, tools and a network, for which their
 * build scripts look. Recognized by what these say; it is said which crate needs what, and what is usual instead.
 */
import type { Diagnostic } from '../model/diagnostic.js';
import { plain } from './diagnostics.js';

interface MissingTool {
  readonly says: RegExp;
  readonly what: string;
  readonly instead: string;
}

/** The first that fits counts: some say what they look for by way of another. */
const MISSING: readonly MissingTool[] = [
  {
    says: /OpenSSL (?:installation|libraries|via pkg-config)|openssl\/opensslv\.h|`openssl` (?:was not found|required)/i,
    what: 'OpenSSL and its headers',
    instead:
      'the feature `rustls-tls` (or `rustls`) of the crate that brings it, without its default features; or the crate ' +
      '`openssl` with the feature `vendored`',
  },
  {
    says: /could not find `?protoc`?|protoc(?:ol buffers compiler)?\b.*(?:not found|not installed|no such file)/i,
    what: 'the compiler of Protocol Buffers, `protoc`',
    instead:
      'generated Rust as a file of the handler, or a crate that brings `protoc`, such as `protoc-bin-vendored`',
  },
  {
    says: /could ?n[o']t resolve|failed to lookup address|name resolution|dns error|network is unreachable|connect(?:ion)? (?:error|refused|timed out)/i,
    what: 'the network',
    instead: 'a feature of the crate that brings what it would download, or that as a file of a local crate',
  },
  {
    says: /unable to find libclang|libclang.*could not/i,
    what: 'libclang, with which it reads C headers',
    instead: 'a feature of the crate that has generated bindings, or another crate',
  },
  {
    says: /is `cmake` not installed|cmake.*(?:not found|no such file)/i,
    what: '`cmake`',
    instead: 'a feature of the crate without C code, or a crate in Rust',
  },
  {
    says: /(?:linker|compiler|tool|program)\W+(?:"|`)?(?:cc|gcc|g\+\+|c\+\+|clang|[\w-]+-gcc)(?:"|`)?.*(?:not found|no such file|is it installed)/i,
    what: 'a compiler for C',
    instead:
      'a feature of the crate without C code, a crate in Rust, or a worker that has a compiler for C in /usr',
  },
  {
    says: /pkg-config|system library `[^`]+`.*(?:was not found|required)/i,
    what: 'a C library, which it looks for with pkg-config',
    instead: 'a feature such as `vendored`, `bundled` or `static` of the crate, or a crate in Rust',
  },
];

/** What cargo says of a build script that has failed. */
const FAILED_SCRIPT = /failed to run custom build command for `([\w-]+) v[^`]*`/;

/** The reason in a sentence, when a build script has not found what it needs. @param stderr of cargo */
export function missingTool(stderr: string): Diagnostic | undefined {
  const crate = FAILED_SCRIPT.exec(stderr)?.[1];
  if (crate === undefined) return undefined;
  const missing = MISSING.find(({ says }) => says.test(stderr));
  if (!missing) return undefined;
  return plain(
    `The crate ${crate} needs ${missing.what}, which builds do not have. Usual instead: ${missing.instead}.`,
  );
}
