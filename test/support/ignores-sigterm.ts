/** Starts a process of its own, says which, and does not end when it is asked to. */
import { spawn } from 'node:child_process';

process.on('SIGTERM', () => undefined);
const { pid } = spawn('sleep', ['1000'], { stdio: 'ignore' });
process.send?.({ type: 'ready', pid });
