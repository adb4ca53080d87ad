/** The order of the pages, by what a reader comes for: to learn, to do one thing, to look something up, to understand (Diátaxis). */
import type { DefaultTheme } from 'vitepress';
import { placeOf, sitePages, titleOf } from './pages.ts';
import { isDesign } from './search.ts';

interface Section {
  readonly title: string;
  readonly pages: readonly string[];
  /** Not pages of VitePress: made beside them by script/site.ts. */
  readonly more?: readonly { readonly text: string; readonly link: string }[];
}

/** Where the title of the page says too little beside the others. */
const shortTitles: Readonly<Record<string, string>> = {
  'README.md': 'In short',
  'docs/tutorial.md': 'From a video to a voice message',
};

const sections: readonly Section[] = [
  { title: 'Tutorial', pages: ['docs/tutorial.md', 'docs/walk.md', 'README.md'] },
  {
    title: 'How-to',
    pages: [
      'docs/how-to/uploads.md',
      'docs/how-to/webhooks.md',
      'docs/how-to/destinations.md',
      'docs/how-to/recordings.md',
      'docs/how-to/presigned.md',
      'docs/how-to/n8n-make-zapier.md',
      'docs/how-to/podcasts.md',
      'docs/how-to/voice-messages-xmpp.md',
      'docs/how-to/whatsapp.md',
      'docs/telegram.md',
      'docs/how-to/other-gateway.md',
      'docs/how-to/transcripts.md',
      'docs/how-to/openai-clients.md',
      'docs/how-to/agents.md',
      'docs/how-to/production-compose.md',
      'docs/how-to/kubernetes.md',
      'docs/how-to/upgrade.md',
      'docs/how-to/migrate.md',
      'docs/how-to/command-line.md',
      'docs/how-to/monitoring.md',
      'docs/how-to/retention.md',
      'docs/how-to/backup.md',
      'docs/how-to/disasters.md',
      'docs/how-to/troubleshooting.md',
    ],
  },
  {
    title: 'Operations',
    pages: [
      'docs/operations/deploying.md',
      'docs/operations/redis.md',
      'docs/operations/storage.md',
      'docs/operations/security.md',
      'docs/operations/keys.md',
      'docs/operations/monitoring.md',
    ],
  },
  {
    title: 'Reference',
    pages: [
      'docs/console.md',
      'docs/reference/command-line.md',
      'docs/api.md',
      'docs/reference/api.md',
      'docs/reference/gateway.md',
      'packages/client/README.md',
      'packages/media/README.md',
      'packages/mcp/README.md',
      'packages/n8n-nodes-soundpost/README.md',
      'docs/inputs.md',
      'docs/timeline.md',
      'docs/webhooks.md',
      'docs/reference/errors.md',
      'docs/reference/configuration.md',
      'docs/gateway.md',
      'docs/xmpp.md',
      'docs/whatsapp-cloud.md',
      'docs/whatsapp.md',
      'docs/reference/metrics.md',
      'docs/glossary.md',
    ],
    more: [
      { text: 'OpenAPI: the API', link: 'reference/api/index.html' },
      { text: 'OpenAPI: the gateway', link: 'reference/gateway/index.html' },
    ],
  },
  {
    title: 'Explanation',
    pages: ['docs/failure.md', 'docs/performance.md', 'SECURITY.md', 'docs/licences.md'],
  },
  { title: 'Examples', pages: sitePages().filter((page) => page.startsWith('examples/')) },
  { title: 'Design', pages: sitePages().filter(isDesign) },
  { title: 'The project', pages: ['CHANGELOG.md', 'CONTRIBUTING.md'] },
];

/** What the site's root shows. */
const home = 'docs/README.md';

/** @throws when a page stands nowhere, or what is no page stands somewhere */
export function sidebar(): DefaultTheme.SidebarItem[] {
  const listed = [home, ...sections.flatMap(({ pages }) => pages)];
  const pages = sitePages();
  const faults = [
    ...pages
      .filter((page) => !listed.includes(page))
      .map((page) => `${page} stands in no section: add it to docs/.vitepress/navigation.ts`),
    ...listed
      .filter((page) => !pages.includes(page))
      .map((page) => `${page} is no page: take it out of docs/.vitepress/navigation.ts`),
  ];
  if (faults.length > 0) {
    throw new Error(faults.join('\n'));
  }
  return sections.map(({ title, pages, more = [] }) => ({
    text: title,
    collapsed: title === 'Design' || title === 'Examples',
    items: [
      ...pages.map((page) => ({ text: shortTitles[page] ?? titleOf(page), link: `/${placeOf(page)}` })),
      ...more.map(({ text, link }) => ({ text, link: `/${link}`, target: '_self' })),
    ],
  }));
}

/** The sections that a reader chooses among, each by its first page. */
export function nav(): DefaultTheme.NavItem[] {
  return sections
    .filter(({ title }) => ['Tutorial', 'How-to', 'Operations', 'Reference', 'Explanation'].includes(title))
    .map(({ title, pages: [first = home] }) => ({ text: title, link: `/${placeOf(first)}` }));
}
