/** Entry of the process `worker`: first it gives up rights that it has from root. */
import { giveUpRights } from '../src/rights/give-up.js';

await giveUpRights('worker');
await import('./worker-process.js');
