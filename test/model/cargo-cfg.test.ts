import { execFileSync } from 'node:child_process';
import { expect } from 'chai';
import { isForTarget } from '../../src/model/cargo-cfg.js';

const X86 = 'x86_64-unknown-linux-gnu';
const ARM = 'aarch64-unknown-linux-gnu';

describe('conditions of tables for targets', () => {
  it('takes each option that rustc prints for the targets of handlers as set', () => {
    for (const target of [X86, ARM]) {
      const printed = execFileSync('rustc', ['--print', 'cfg', '--target', target], { encoding: 'utf8' });
      for (const option of printed.trim().split('\n'))
        expect(isForTarget(`cfg(${option})`, target), `${option} of ${target}`).to.equal(true);
    }
  });

  for (const [condition, isX86, isArm] of [
    [X86, true, false],
    ['x86_64-pc-windows-msvc', false, false],
    ['cfg(unix)', true, true],
    ['cfg(windows)', false, false],
    ['cfg(target_arch = "aarch64")', false, true],
    ['cfg(not(target_arch = "aarch64"))', true, false],
    ['cfg(all())', true, true],
    ['cfg(any())', false, false],
    ['cfg(all(unix, target_os = "linux",))', true, true],
    ['cfg(any(target_os = "macos", all(target_env = "gnu", target_pointer_width = "64")))', true, true],
    [' cfg ( not ( any ( windows , target_os="macos" ) ) ) ', true, true],
    ['cfg(feature = "x")', false, false],
    ['cfg(true)', true, true],
  ] as const)
    it(`evaluates ${condition}`, () => {
      expect([X86, ARM].map((target) => isForTarget(condition, target))).to.deep.equal([isX86, isArm]);
    });

  for (const wrong of [
    'cfg()',
    'cfg(all(unix)',
    'cfg(unix windows)',
    'cfg(= "x")',
    'cfg(not(unix, unix))',
    'cfg(a = b)',
  ])
    it(`refuses ${wrong}`, () => {
      expect(isForTarget(wrong, X86)).to.deep.equal({ problem: 'is no condition' });
    });
});
