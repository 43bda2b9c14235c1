/** The Cargo.toml of a set of dependencies. */
import { expect } from 'chai';
import { manifest } from '../../src/build/manifest.js';
import type { Dependencies } from '../../src/model/crates.js';

describe('the manifest of a set of dependencies', () => {
  const manifestOf = (dependencies: Dependencies, async = false) => manifest('/sdk', { dependencies, async });

  it('writes a manifest with the SDK, serde and the dependencies of a handler', () => {
    const text = manifestOf({
      regex: '1.10',
      chrono: { version: '0.4', features: ['serde'], 'default-features': false, optional: true },
    });
    expect(text).to.include('rust-edge-gateway-sdk = { path = "/sdk", features = [] }');
    expect(text).to.include('\nserde = { version = "1", features = ["derive"] }');
    expect(text).to.include('\nserde_json = { version = "1" }');
    expect(text).to.include('\nregex = { version = "1.10" }');
    expect(text).to.include(
      '\nchrono = { version = "0.4", features = ["serde"], default-features = false, optional = true }',
    );
  });

  it('keeps the feature derive when a handler asks for serde itself, and names each crate once', () => {
    const text = manifestOf({
      serde: { version: '1.0.100', features: ['rc'] },
      serde_json: { version: '1', features: ['preserve_order'] },
    });
    expect(text).to.include('\nserde = { version = "1.0.100", features = ["derive","rc"] }');
    expect(text).to.include('\nserde_json = { version = "1", features = ["preserve_order"] }');
    expect(text.match(/^serde = /gm)).to.have.length(1);
  });

  it('does not let a handler switch off the parts of serde that the SDK needs', () => {
    const text = manifestOf({
      serde: { version: '1', optional: true, 'default-features': false },
      serde_json: { version: '1', optional: true },
    });
    expect(text).not.to.match(/^serde(_json)? = .*optional/m);
  });

  it('asks for the async part of the SDK only for handlers that use it', () => {
    expect(manifestOf({}, true)).to.include('features = ["async"] }');
  });

  it('says where crates are from, and their own names', () => {
    const rev = '0123456789'.repeat(4);
    const text = manifestOf({
      forked: { git: 'https://git.example/forked', rev },
      ours: { version: '1', registry: 'sparse+https://crates.example/', package: 'our-crate' },
      shared: { path: 'crates/shared' },
      project: { path: '.' },
    });
    expect(text).to.include(`\nforked = { git = "https://git.example/forked", rev = "${rev}" }`);
    expect(text).to.include(
      '\nours = { version = "1", package = "our-crate", registry-index = "sparse+https://crates.example/" }',
    );
    expect(text).to.include('\nshared = { path = "local/crates/shared" }');
    expect(text).to.include('\nproject = { path = "local" }');
  });
});
