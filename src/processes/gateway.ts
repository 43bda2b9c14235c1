/** Entry of the process `gateway`: first it gives up rights that it has from root. */
import { giveUpRights } from '../rights/give-up.js';

await giveUpRights('gateway');
await import('./gateway-process.js');
