/** Pages, and parts of them, whose code comes when they are opened. */
import type { ComponentChildren, FunctionComponent } from 'preact';
import { useLayoutEffect, useState } from 'preact/hooks';
import { Notice, Skeleton } from './notices.js';
import { Page } from './page.js';

/** What a page gets: the named parts of its address. */
export interface PageProps {
  readonly params: Readonly<Record<string, string | undefined>>;
}

/** A component whose code comes later. */
export interface Lazy<P extends object> extends FunctionComponent<P> {
  /** Begins to load its code, which will be needed soon. A failure is said when it is shown. */
  preload(): void;
}

/** A page of which some or all code comes later. */
export interface LazyPage extends FunctionComponent<PageProps> {
  /** Begins to load the code that it needs at this address. */
  preload(props: PageProps): void;
}

/** A page whose code is loaded when it is opened. */
export function lazyPage(load: () => Promise<FunctionComponent<PageProps>>): LazyPage {
  return lazily(
    async () => keyed(await load()),
    (waiting) => <Page title="Loading">{waiting}</Page>,
  );
}

/** A page of another object is another page: nothing that was typed goes along. */
export function keyed(Content: FunctionComponent<PageProps>): FunctionComponent<PageProps> {
  return (props) => <Content key={props.params['id']} {...props} />;
}

/** Its file may be of a build that the gateway no longer has: that is said when the gateway says so. */
const NOT_LOADED =
  'This part of the page could not be loaded. Try again; reload the page if the gateway was replaced meanwhile.';

/** A part of a page whose code is loaded when it is shown. */
export function lazyPart<P extends object>(load: () => Promise<FunctionComponent<P>>): Lazy<P> {
  return lazily(load, (waiting) => <>{waiting}</>);
}

function lazily<P extends object>(
  load: () => Promise<FunctionComponent<P>>,
  frame: (waiting: ComponentChildren) => ComponentChildren,
): Lazy<P> {
  let loaded: FunctionComponent<P> | undefined;
  let loading: Promise<FunctionComponent<P>> | undefined;
  /** Tried again after a failure. */
  const loadOnce = async () => {
    loading ??= load();
    try {
      loaded = await loading;
      return loaded;
    } catch (thrown) {
      loading = undefined;
      throw thrown;
    }
  };
  function Lazy(props: P) {
    const [Loaded, setLoaded] = useState<FunctionComponent<P> | undefined>(() => loaded);
    const [failure, setFailure] = useState<string>();
    const open = () => {
      setFailure(undefined);
      loadOnce().then(
        (component) => setLoaded(() => component),
        (thrown: unknown) => setFailure(String(thrown)),
      );
    };
    useLayoutEffect(() => {
      if (!Loaded) open();
    }, []);
    if (Loaded) return <Loaded {...props} />;
    if (failure === undefined) return frame(<Skeleton />);
    return frame(
      <Notice message={NOT_LOADED} onRetry={open}>
        <div class="small muted">{failure}</div>
      </Notice>,
    );
  }
  const preload = () => {
    loadOnce().catch(() => undefined);
  };
  return Object.assign(Lazy, { preload });
}
