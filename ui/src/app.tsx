/** The pages by address, and what stands around them. */
import { isKnown, me } from './api/session.js';
import { OpenedDialogs } from './base/ask.js';
import { Toasts } from './base/toasts.js';
import { Pages, PreloadedPage } from './pages.js';
import { Connecting } from './shell/connecting.js';
import { ExpiredSession } from './shell/expired-session.js';
import { Shell } from './shell/shell.js';
import { SignIn } from './shell/sign-in.js';

export function App() {
  return (
    <>
      <Content />
      <Toasts />
    </>
  );
}

function Content() {
  if (me.value === undefined)
    return (
      <>
        <Connecting />
        <PreloadedPage />
      </>
    );
  if (!isKnown.value) return <SignIn />;
  return (
    <Shell>
      <Pages />
      <OpenedDialogs />
      <ExpiredSession />
    </Shell>
  );
}
