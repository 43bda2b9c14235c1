/** Which page is at which address. The first two come with the application, the others when they are opened. */
import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Link, Route, Switch } from 'wouter-preact';
import { isOutdated } from './api/live.js';
import { toApiError } from './api/query.js';
import { Empty, ErrorNotice, Skeleton } from './base/notices.js';
import { Page } from './base/page.js';
import { EndpointsPage } from './endpoints/endpoints-page.js';

export function Pages() {
  return (
    <Switch>
      <Route path="/ui/endpoints" component={EndpointsPage} />
      <Route>
        <Page title="Nothing here">
          <Empty title="There is no such page">
            <Link href="/ui">Go to the overview</Link>
          </Empty>
        </Page>
      </Route>
    </Switch>
  );
}

/** A page whose code is loaded when it is opened. */
export function later<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let loaded: ComponentType<Props> | undefined;
  return function Later(props: Props) {
    const [Loaded, setLoaded] = useState<ComponentType<Props> | undefined>(() => loaded);
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
