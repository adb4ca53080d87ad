/** Which view the part of the address after # names: `#/jobs/job_…` is a job, `#/jobs?status=failed` a filtered list. */
import { useEffect, useState } from 'preact/hooks';

export type ViewName = 'new' | 'history' | 'job' | 'webhooks' | 'instances' | 'keys' | 'usage';

export interface Route {
  readonly view: ViewName;
  /** Of the job, where the view is one. */
  readonly id?: string;
  /** Filters and page of a list, so that its link shows the same to somebody else. */
  readonly query: URLSearchParams;
}

const plain: Readonly<Record<string, ViewName>> = {
  webhooks: 'webhooks',
  instances: 'instances',
  keys: 'keys',
  usage: 'usage',
};

export function routeOf(hash: string): Route {
  const [path = '', search = ''] = hash.split('?', 2);
  const [, name = '', id = ''] = path.split('/');
  const query = new URLSearchParams(search);
  if (name === 'jobs') return id === '' ? { view: 'history', query } : { view: 'job', id, query };
  return { view: (Object.hasOwn(plain, name) ? plain[name] : undefined) ?? 'new', query };
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

let wantedFocus: string | undefined;

/** @param focus id of what takes the focus there; default: the heading */
export function goTo(hash: string, focus?: string): void {
  wantedFocus = focus;
  location.hash = hash;
}

/** As {@link goTo} was told last; once. */
export function focusWanted(): string | undefined {
  const wanted = wantedFocus;
  wantedFocus = undefined;
  return wanted;
}

/**
 * Changes what the address says of the list that is shown. An empty value is left out.
 * @param isStep whether the browser's back button undoes it; typing is no step
 */
export function changeQuery(change: Readonly<Record<string, string>>, isStep = false): void {
  const [path = '', search = ''] = location.hash.split('?', 2);
  const query = new URLSearchParams(search);
  for (const [name, value] of Object.entries(change)) {
    if (value === '') query.delete(name);
    else query.set(name, value);
  }
  const hash = query.size === 0 ? path : `${path}?${query}`;
  if (hash === location.hash) return;
  if (isStep) location.hash = hash;
  else location.replace(hash);
}
