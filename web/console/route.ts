/** Which view the part of the address after # names: `#/jobs/job_…` is a job. */
import { useEffect, useState } from 'preact/hooks';

export type ViewName = 'new' | 'history' | 'job' | 'webhooks' | 'instances' | 'keys' | 'usage';

export interface Route {
  readonly view: ViewName;
  /** Of the job, where the view is one. */
  readonly id?: string;
}

const plain: Readonly<Record<string, ViewName>> = {
  webhooks: 'webhooks',
  instances: 'instances',
  keys: 'keys',
  usage: 'usage',
};

function routeOf(hash: string): Route {
  const [, name = '', id = ''] = hash.split('/');
  if (name === 'jobs') return id === '' ? { view: 'history' } : { view: 'job', id };
  return { view: (Object.hasOwn(plain, name) ? plain[name] : undefined) ?? 'new' };
}

export function useRoute(): Route {
  const [route, setRoute] = useState(() => routeOf(location.hash));
  useEffect(() => {
    const change = (): void => setRoute(routeOf(location.hash));
    addEventListener('hashchange', change);
    return () => removeEventListener('hashchange', change);
  }, []);
  return route;
}

export function goTo(hash: string): void {
  location.hash = hash;
}
