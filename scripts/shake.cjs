/**
 * Pauses at random, so that orders of events that are rare come often (`npm run test:shaken`). mocha requires it, and
 * with it the processes of the product that tests start, and those that these start: the ones in Node pause before they
 * take what has arrived on a socket, and before they write to one; native programs by `shake.c`. Each draws its pauses
 * from SHAKE_SEED, which is another one for each process. Must not import packages.
 */
const { ChildProcess } = require('node:child_process');
const { EventEmitter } = require('node:events');
const { Server, Socket } = require('node:net');
const { join } = require('node:path');

/** One in so many pieces that arrive or are written waits, up to so many milliseconds. */
const ONE_IN = 4;
const LONGEST_MS = 50;

const IN_NODE =
  /(?:^|\/)(?:dist\/(?:src\/processes|jobs)\/[\w-]+\.js|(?:processes\/service|programs\/\w+)\/service\.js|scripts\/up\.mjs)$/;
/** Not the launcher alone: it becomes programs that are not the product's, and cannot see this folder. */
const NATIVE = /\/dist\/native\/(?!launcher$)[\w-]+$/;
/** Starts services in another environment, which is among its settings. */
const STARTER = /\/dist\/native\/starter$/;
/** The module by which a process becomes the launcher, which leaves the starter behind. */
const EXECUTE = /\/dist\/native\/execute\.node$/;

let state = Number(process.env.SHAKE_SEED);

shakeChildren();
shakeStarter();
if (IN_NODE.test(process.argv[1])) {
  shakeReads();
  shakeWrites();
}

/** Whatever environment they are started with. */
function shakeChildren() {
  const { spawn } = ChildProcess.prototype;
  ChildProcess.prototype.spawn = function (options) {
    // A shell may be what starts it.
    const words = [options.file, ...options.args];
    const isNative = words.some((word) => NATIVE.test(word));
    if (!isNative && !words.some((word) => IN_NODE.test(word))) return spawn.call(this, options);
    const environment = Object.fromEntries(options.envPairs.map((pair) => pair.split(/=(.*)/s, 2)));
    environment.SHAKE_SEED = Math.floor(random() * 2 ** 32);
    if (isNative) environment.LD_PRELOAD = join(__dirname, 'shake.so');
    else environment.NODE_OPTIONS = withThis(environment.NODE_OPTIONS ?? '');
    const envPairs = Object.entries(environment).map((pair) => pair.join('='));
    const args = STARTER.test(options.file) ? shakenStarter(options.args) : options.args;
    return spawn.call(this, { ...options, args, envPairs });
  };
}

/** One that the launcher starts for a process of root. */
function shakeStarter() {
  const { dlopen } = process;
  process.dlopen = function (module, file, ...flags) {
    dlopen.call(this, module, file, ...flags);
    if (!EXECUTE.test(file)) return;
    const become = module.exports;
    module.exports = (text) => {
      const request = JSON.parse(text);
      const plan = JSON.parse(request.arguments[1]);
      if (plan.process?.starter) plan.process.starter = shakenStarter(plan.process.starter);
      request.arguments[1] = JSON.stringify(plan);
      return become(JSON.stringify(request));
    };
  };
}

/** Its words, so that what it starts pauses: services in Node by this file, others by the library. */
function shakenStarter([file, text]) {
  const settings = JSON.parse(text);
  const { environment } = settings;
  environment.NODE_OPTIONS = withThis(environment.NODE_OPTIONS ?? '');
  environment.LD_PRELOAD = join(__dirname, 'shake.so');
  environment.SHAKE_SEED = String(Math.floor(random() * 2 ** 32));
  return [file, JSON.stringify(settings)];
}

function withThis(options) {
  const option = `--require=${__filename}`;
  return options.includes(option) ? options : `${options} ${option}`.trim();
}

/** What arrives on a socket during a pause waits, too, and so does its end. */
function shakeReads() {
  const { push } = Socket.prototype;
  const waiting = new WeakMap();
  Socket.prototype.push = function (...piece) {
    const before = waiting.get(this);
    if (!before && !isChosen()) return push.apply(this, piece);
    if (before) {
      before.push(piece);
    } else {
      const pieces = [piece];
      waiting.set(this, pieces);
      later(() => {
        for (const next of pieces) if (!this.destroyed) push.apply(this, next);
        waiting.delete(this);
      });
    }
    return false; // nothing more is read meanwhile
  };
  // Servers of HTTP read by themselves what comes from such a handle.
  Server.prototype.emit = function (event, ...args) {
    const handle = event === 'connection' && args[0]._handle;
    if (handle) Object.defineProperty(handle, 'isStreamBase', { value: false });
    return EventEmitter.prototype.emit.call(this, event, ...args);
  };
}

/** What is written later waits for what was written before. */
function shakeWrites() {
  const { _writeGeneric } = Socket.prototype;
  Socket.prototype._writeGeneric = function (...args) {
    // The last output of a process that exits must not wait.
    if (this._isStdio || !isChosen()) _writeGeneric.apply(this, args);
    else later(() => _writeGeneric.apply(this, args));
  };
}

function isChosen() {
  return random() < 1 / ONE_IN;
}

function later(work) {
  setTimeout(work, random() * LONGEST_MS);
}

/** A number from 0 to 1, by mulberry32. */
function random() {
  state = (state + 0x6d2b79f5) | 0;
  let mixed = Math.imul(state ^ (state >>> 15), state | 1);
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
}
