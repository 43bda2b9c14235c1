/** What is said of crates whose build scripts do not find what they need. The output is that of cargo, shortened. */
import { expect } from 'chai';
import { missingTool } from '../../src/build/missing-tools.js';

const failed = (crate: string, text: string) =>
  `error: failed to run custom build command for \`${crate}\`\n\nCaused by:\n  process didn't exit successfully\n  --- stderr\n  ${text}\n`;

describe('crates that need more than Rust', () => {
  const cases: readonly (readonly [crate: string, said: string, what: RegExp, instead: RegExp])[] = [
    [
      'openssl-sys v0.9.104',
      'Could not find directory of OpenSSL installation, and this `-sys` crate cannot proceed without this knowledge.',
      /^The crate openssl-sys needs OpenSSL and its headers, which builds do not have\./,
      /`rustls-tls`.*`vendored`/,
    ],
    [
      'prost-build v0.13.4',
      'Error: Custom { kind: NotFound, error: "Could not find `protoc`. If `protoc` is installed, try setting the `PROTOC` environment variable to the path of the `protoc` binary." }',
      /^The crate prost-build needs the compiler of Protocol Buffers/,
      /protoc-bin-vendored/,
    ],
    [
      'libz-ng-sys v1.1.21',
      'failed to execute command: No such file or directory (os error 2)\n  is `cmake` not installed?',
      /^The crate libz-ng-sys needs `cmake`/,
      /a crate in Rust/,
    ],
    [
      'ring v0.17.8',
      'error occurred in cc-rs: failed to find tool "cc": No such file or directory (os error 2) (see https://docs.rs/cc)',
      /^The crate ring needs a compiler for C/,
      /in \/usr/,
    ],
    [
      'alsa-sys v0.3.1',
      'The system library `alsa` required by crate `alsa-sys` was not found.\n  The pkg-config command could not be run.',
      /^The crate alsa-sys needs a C library, which it looks for with pkg-config/,
      /`bundled`/,
    ],
    [
      'fetching v1.0.0',
      'error: failed to connect: Connection refused (os error 111)\n  curl: (6) Could not resolve host: files.example',
      /^The crate fetching needs the network/,
      /a file of a local crate/,
    ],
    [
      'clang-sys v1.8.1',
      "Unable to find libclang: \"couldn't find any valid shared libraries matching: ['libclang.so']\"",
      /^The crate clang-sys needs libclang/,
      /bindings/,
    ],
  ];
  for (const [crate, said, what, instead] of cases)
    it(`says what ${crate} needs, and what is usual instead`, () => {
      const { message = '' } = missingTool(failed(crate, said)) ?? {};
      expect(message).to.match(what).and.to.match(instead);
    });

  it('says nothing of build scripts that fail for another reason, and of other failures', () => {
    expect(missingTool(failed('mine v1.0.0', "thread 'main' panicked at build.rs:1: no"))).to.equal(
      undefined,
    );
    expect(missingTool('error[E0432]: unresolved import `openssl`')).to.equal(undefined);
  });
});
