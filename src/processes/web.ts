/** Entry of the process `web`: first it gives up rights that it has from root. */
import { giveUpRights } from '../rights/give-up.js';

await giveUpRights('web');
await import('./web-process.js');
