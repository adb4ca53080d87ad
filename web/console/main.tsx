/** The console: signs in, and shows the view that the address names. */
import { Component, type ComponentChildren, render } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { forgetGateway } from './gateway.ts';
import { lazyView } from './lazy-view.tsx';
import { forgetRecipients } from './recipients.ts';
import { focusWanted, goTo, type Route, routeOf, useRoute, type ViewName } from './route.ts';
import { isSignedIn, signOut, watchSession } from './session.ts';
import { Shell } from './shell.tsx';
import { SignIn, SignInAgain } from './sign-in.tsx';
import { ConfirmDialog } from './ui.tsx';
import { forgetBulk } from './views/history/bulk-work.ts';
import { History } from './views/history/history.tsx';
import { forgetNewJob, NewJob } from './views/new/new-job.tsx';

const JobView = lazyView<{ jobId: string }>(async () => (await import('./views/job/job.tsx')).JobView);
const Webhooks = lazyView<{ query: URLSearchParams }>(
  async () => (await import('./views/webhooks/webhooks.tsx')).Webhooks,
);
const Instances = lazyView<{ query: URLSearchParams }>(
  async () => (await import('./views/instances/instances.tsx')).Instances,
);
const Keys = lazyView<{ query: URLSearchParams }>(async () => (await import('./views/keys/keys.tsx')).Keys);
const Usage = lazyView(async () => (await import('./views/usage.tsx')).Usage);

const titles: Readonly<Record<ViewName, string>> = {
  new: 'New extraction',
  history: 'History',
  job: 'Job',
  webhooks: 'Webhooks',
  instances: 'Instances',
  keys: 'Keys',
  usage: 'Usage',
};

function App() {
  const [isIn, setIn] = useState(isSignedIn());
  const [hasEnded, setEnded] = useState(false);
  const [reason, setReason] = useState('');
  useEffect(() => {
    watchSession({
      onSignedIn() {
        setReason('');
        setEnded(false);
        setIn(true);
      },
      onSignedOut(told) {
        forgetAll();
        setReason(told);
        setEnded(false);
        setIn(false);
      },
      onEnded(told) {
        setReason(told);
        setEnded(true);
      },
    });
  }, []);
  return (
    <>
      {isIn ? <SignedIn onSignOut={() => void signOut()} /> : <SignIn reason={reason} />}
      <ConfirmDialog />
      {hasEnded ? <SignInAgain reason={reason} /> : null}
    </>
  );
}

/** Nothing of the key's stays in this browser. */
function forgetAll(): void {
  forgetNewJob();
  forgetBulk();
  forgetGateway();
  forgetRecipients();
}

function SignedIn({ onSignOut }: { readonly onSignOut: () => void }) {
  const route = useRoute();
  const { view, id } = route;
  const isFirst = useRef(true);
  useEffect(() => {
    document.title = `${titles[view]} · Soundpost`;
    if (!isFirst.current || document.activeElement === document.body) {
      scrollTo(0, 0);
      // What reads the page aloud goes along.
      document.getElementById(focusWanted() ?? `${view}-title`)?.focus({ preventScroll: true });
    }
    isFirst.current = false;
  }, [view, id]);
  useEffect(() => {
    const find = (event: KeyboardEvent): void => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      if (routeOf(location.hash).view === 'history') document.getElementById('search')?.focus();
      else goTo('#/jobs', 'search');
    };
    addEventListener('keydown', find);
    return () => removeEventListener('keydown', find);
  }, []);
  return (
    <Shell view={view} onSignOut={onSignOut}>
      <Boundary>
        {/* What was begun there stays while somebody looks elsewhere. */}
        <div hidden={view !== 'new'}>
          <NewJob isShown={view === 'new'} />
        </div>
      </Boundary>
      <Boundary key={`${view} ${id ?? ''}`}>
        <View route={route} />
      </Boundary>
    </Shell>
  );
}

function View({ route: { view, id, query } }: { readonly route: Route }) {
  switch (view) {
    case 'new':
      return null;
    case 'history':
      return <History query={query} />;
    case 'job':
      return <JobView jobId={id ?? ''} />;
    case 'webhooks':
      return <Webhooks query={query} />;
    case 'instances':
      return <Instances query={query} />;
    case 'keys':
      return <Keys query={query} />;
    case 'usage':
      return <Usage />;
  }
}

/** A view that throws says so in its place; the others go on. */
class Boundary extends Component<{ children: ComponentChildren }, { broken: boolean }> {
  override state = { broken: false };

  static override getDerivedStateFromError(): { broken: boolean } {
    return { broken: true };
  }

  override render() {
    return this.state.broken ? (
      <p class="card fault" role="alert">
        This view failed. Reload the page. If it fails again, tell your operator.
      </p>
    ) : (
      this.props.children
    );
  }
}

const root = document.getElementById('root');
if (root !== null) {
  root.replaceChildren();
  render(<App />, root);
}
