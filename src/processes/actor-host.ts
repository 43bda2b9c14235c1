/** Entry of the process `actor-host`: first it gives up rights that it has from root. */
import { giveUpRights } from '../rights/give-up.js';

await giveUpRights('actor-host');
await import('./actor-host-process.js');
