/** Pages, and parts of them, whose code comes when they are opened. */
import type { ComponentChildren, FunctionComponent } from 'preact';
import { useLayoutEffect, useState } from 'preact/hooks';
import { isOutdated } from '../api/live.js';
import { toApiError } from '../api/query.js';
import { ErrorNotice, Skeleton } from './notices.js';
import { Page } from './page.js';

/** What a page gets: the named parts of its address. */
export interface PageProps {
  readonly params: Readonly<Record<string, string | undefined>>;
}

/** A component whose code comes later. */
export interface Later<P extends object> extends FunctionComponent<P> {
  /** Begins to load its code, which will be needed soon. A failure is said when it is shown. */
  preload(props?: P): void;
}

/** A component, perhaps of parts whose code comes later. */
interface Loadable<P extends object> extends FunctionComponent<P> {
  /** Begins to load the parts that it will show. */
  readonly preloadParts?: ((props: P) => void) | undefined;
}

/**
 * A page whose code is loaded when it is opened.
 * @param ahead begins to read what it will show, while its code is loaded
 */
export function later(
  load: () => Promise<Loadable<PageProps>>,
  ahead?: (props: PageProps) => void,
): Later<PageProps> {
  // A page of another object is another page: nothing that was typed goes along.
  const loadKeyed = async () => {
    const Loaded = await load();
    const Keyed = (props: PageProps) => <Loaded key={props.params['id']} {...props} />;
    return Object.assign(Keyed, { preloadParts: Loaded.preloadParts });
  };
  return lazily(loadKeyed, (waiting) => <Page title="Loading">{waiting}</Page>, ahead);
}

/** A part of a page whose code is loaded when it is shown. */
export function laterPart<P extends object>(load: () => Promise<FunctionComponent<P>>): Later<P> {
  return lazily(load, (waiting) => <>{waiting}</>);
}

function lazily<P extends object>(
  load: () => Promise<Loadable<P>>,
  frame: (waiting: ComponentChildren) => ComponentChildren,
  ahead?: (props: P) => void,
): Later<P> {
  let loaded: Loadable<P> | undefined;
  let loading: Promise<Loadable<P>> | undefined;
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
  function Later(props: P) {
    const [Loaded, setLoaded] = useState<FunctionComponent<P> | undefined>(() => loaded);
    const [failure, setFailure] = useState<unknown>();
    const open = () => {
      setFailure(undefined);
      loadOnce().then(
        (component) => setLoaded(() => component),
        (thrown: unknown) => {
          setFailure(thrown);
          // Its file is of a version that the gateway no longer has.
          if (navigator.onLine) isOutdated.value = true;
        },
      );
    };
    useLayoutEffect(() => {
      if (Loaded) return;
      open();
      ahead?.(props);
    }, []);
    if (Loaded) return <Loaded {...props} />;
    return frame(
      failure === undefined ? <Skeleton /> : <ErrorNotice error={toApiError(failure)} onRetry={open} />,
    );
  }
  const preload = (props?: P) => {
    loadOnce().then(
      (component) => props && component.preloadParts?.(props),
      () => undefined,
    );
  };
  return Object.assign(Later, { preload });
}
