/** What stands around every view: the name, the ways to the views, colours, signing out. */
import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import appIcon from '../shared/icon.svg';
import type { ViewName } from './route.ts';
import { chooseTheme, useDark } from './theme.ts';
import { Icon } from './ui.tsx';

const ways: readonly {
  readonly view: ViewName;
  readonly href: string;
  readonly icon: string;
  readonly label: string;
}[] = [
  { view: 'new', href: '#/', icon: 'new', label: 'New' },
  { view: 'history', href: '#/jobs', icon: 'history', label: 'History' },
  { view: 'webhooks', href: '#/webhooks', icon: 'webhooks', label: 'Webhooks' },
  { view: 'instances', href: '#/instances', icon: 'instances', label: 'Instances' },
  { view: 'keys', href: '#/keys', icon: 'keys', label: 'Keys' },
  { view: 'usage', href: '#/usage', icon: 'usage', label: 'Usage' },
];

interface ShellProps {
  readonly view: ViewName;
  readonly onSignOut: () => void;
  readonly children: ComponentChildren;
}

export function Shell({ view, onSignOut, children }: ShellProps) {
  const content = useRef<HTMLElement>(null);
  const shown = view === 'job' ? 'history' : view;
  return (
    <div id="app" class="app">
      {/* No link: the part of the address after # names the view, so it cannot name a place in it. */}
      <button type="button" class="skip" id="skip" onClick={() => content.current?.focus()}>
        Skip to content
      </button>
      <header class="top">
        <a class="brand" href="#/">
          <img src={appIcon} width="30" height="30" alt="" />
          <span>Soundpost</span>
        </a>
        <nav class="views" aria-label="Views">
          {ways.map(({ view: name, href, icon, label }) => (
            <a
              key={name}
              href={href}
              title={label}
              data-view={name}
              aria-current={name === shown ? 'page' : undefined}
            >
              <Icon name={icon} />
              <span>{label}</span>
            </a>
          ))}
        </nav>
        <div class="tools">
          <ThemeButton />
          <button
            type="button"
            class="round"
            id="sign-out"
            aria-label="Sign out"
            title="Sign out"
            onClick={onSignOut}
          >
            <Icon name="leave" />
          </button>
        </div>
      </header>
      <main id="content" class="content" tabIndex={-1} ref={content}>
        {children}
      </main>
    </div>
  );
}

function ThemeButton() {
  const dark = useDark();
  const label = dark ? 'Use light theme' : 'Use dark theme';
  return (
    <button
      type="button"
      class="round"
      id="theme"
      aria-label={label}
      title={label}
      onClick={() => chooseTheme(dark ? 'light' : 'dark')}
    >
      <Icon name={dark ? 'sun' : 'moon'} />
    </button>
  );
}
