/** Entry of the process `gateway`: first it gives up rights that it has from root. */
import { giveUpRights } from '../bootstrap/rights.js';

await giveUpRights('gateway');
await import('./gateway-process.js');
