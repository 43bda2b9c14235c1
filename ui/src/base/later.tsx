/** Pages whose code comes when they are opened. */
import type { FunctionComponent } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { isOutdated } from '../api/live.js';
import { toApiError } from '../api/query.js';
import { ErrorNotice, Skeleton } from './notices.js';
import { Page } from './page.js';

/** What a page gets: the named parts of its address. */
export interface PageProps {
  readonly params: Readonly<Record<string, string | undefined>>;
}
type PageComponent = FunctionComponent<PageProps>;

/** A page whose code is loaded when it is opened. */
export function later(load: () => Promise<PageComponent>): PageComponent {
  let loaded: PageComponent | undefined;
  return function Later(props: PageProps) {
    const [Loaded, setLoaded] = useState<PageComponent | undefined>(() => loaded);
    const [failure, setFailure] = useState<unknown>();
    const open = () => {
      setFailure(undefined);
      load().then(
        (component) => {
          loaded = component;
          setLoaded(() => component);
        },
        (thrown: unknown) => {
          setFailure(thrown);
          // Its file is of a version that the gateway no longer has.
          if (navigator.onLine) isOutdated.value = true;
        },
      );
    };
    useEffect(() => {
      if (!Loaded) open();
    }, []);
    if (Loaded) return <Loaded {...props} />;
    return (
      <Page title="Loading">
        {failure === undefined ? <Skeleton /> : <ErrorNotice error={toApiError(failure)} onRetry={open} />}
      </Page>
    );
  };
}
