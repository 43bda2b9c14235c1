/** Entry of the process `web`: first it gives up rights that it has from root. */
import { giveUpRights } from '../bootstrap/rights.js';

await giveUpRights('web');
await import('./web-process.js');
