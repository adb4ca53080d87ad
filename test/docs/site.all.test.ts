// @module-tag chromium
/** The site of the documentation as a visitor has it: built, behind a plain web server, in a real browser. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, extname, join, posix } from 'node:path';
import { text } from 'node:stream/consumers';
import MiniSearch from 'minisearch';
import type { Page } from 'playwright-core';
import { startChromium, type TestBrowser } from 'soundpost-testing/chromium';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { searchOptions } from '../../docs/.vitepress/search.ts';
import { seriousFaults } from '../end-to-end/console-page.ts';
import { projectFolder } from './markdown.ts';

/** Not the server's root: the site has to work wherever it is put. */
const PLACE = '/some/where/';

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.json': 'application/json',
};

let folder = '';
let server: Server;
let browser: TestBrowser;
let page: Page;
let home = '';
/** What the pages complained of, and what they asked for that is not of the site. */
const complaints: string[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-site-'));
  const build = spawn(process.execPath, [join(projectFolder, 'script/site.ts'), join(folder, 'site')], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [out, faults, [code]] = await Promise.all([
    text(build.stdout),
    text(build.stderr),
    once(build, 'close'),
  ]);
  expect(code, out + faults).toBe(0);
  server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://site');
    const file = join(
      folder,
      'site',
      pathname.slice(PLACE.length),
      pathname.endsWith('/') ? 'index.html' : '',
    );
    const body = pathname.startsWith(PLACE) ? await readFile(file).catch(() => undefined) : undefined;
    response.writeHead(body === undefined ? 404 : 200, {
      'content-type': MEDIA_TYPES[extname(file)] ?? 'text/plain',
    });
    response.end(body);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  home = `${origin}${PLACE}`;
  browser = await startChromium({ width: 1280, height: 800 });
  browser.context.on('request', (request) => {
    if (!request.url().startsWith(home) && !request.url().startsWith('data:')) complaints.push(request.url());
  });
  browser.context.on('response', (response) => {
    if (!response.ok() && response.status() !== 304)
      complaints.push(`${response.status()} ${response.url()}`);
  });
  page = await browser.context.newPage();
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
  });
}, 120_000);

afterAll(async () => {
  await browser?.close();
  server?.close();
  await rm(folder, { recursive: true, force: true });
});

const heading = (name: string | RegExp) => page.getByRole('heading', { level: 1, name }).waitFor();

describe('the site', () => {
  it('has no link, picture or anchor that leads nowhere', async () => {
    const site = join(folder, 'site');
    const pages = globSync('**/*.html', { cwd: site }).filter((name) => name !== '404.html');
    expect(pages.length).toBeGreaterThan(50);
    const html = new Map(
      await Promise.all(pages.map(async (name) => [name, await readFile(join(site, name), 'utf8')] as const)),
    );
    const files = new Set(globSync('**/*', { cwd: site }));
    const broken = [...html].flatMap(([name, content]) =>
      [...content.matchAll(/ (?:href|src)="([^"]+)"/g)]
        .map(([, target = '']) => target.replaceAll('&amp;', '&'))
        .filter((target) => !/^[a-z]+:/.test(target) && !leads(name, target, html, files))
        .map((target) => `${name}: ${target}`),
    );
    expect(broken).toEqual([]);
  });

  it('opens, leads on by its navigation, and back', async () => {
    await page.goto(home);
    await heading('Documentation');
    await page
      .getByRole('navigation', { name: 'Main Navigation' })
      .getByRole('link', { name: 'Tutorial' })
      .click();
    await heading(/^Tutorial/);
    await page
      .getByRole('navigation', { name: 'Sidebar Navigation' })
      .getByRole('link', { name: 'Configuration' })
      .click();
    await heading('Configuration');
    await page.goBack();
    await heading(/^Tutorial/);
  });

  it('leads to a variable by its name, which has capitals', async () => {
    await page.goto(`${home}webhooks.html`);
    await page.getByRole('link', { name: 'WEBHOOK_SCHEDULE_SECONDS' }).click();
    await heading('Configuration');
    expect(new URL(page.url()).hash).toBe('#WEBHOOK_SCHEDULE_SECONDS');
    await page.locator('#WEBHOOK_SCHEDULE_SECONDS').waitFor({ state: 'attached' });
  });

  it('finds a word', async () => {
    await page.goto(home);
    await page
      .getByRole('button', { name: /search/i })
      .first()
      .click();
    await page.getByRole('searchbox').fill('true-peak');
    await page.getByRole('option').first().waitFor();
    await page
      .getByRole('option', { name: /loudness|API/i })
      .first()
      .click();
    await page.waitForURL((url) => url.href !== home);
  });

  describe('search', () => {
    let index: MiniSearch;

    beforeAll(async () => {
      const [chunk = ''] = globSync('assets/chunks/@localSearchIndexroot.*.js', {
        cwd: join(folder, 'site'),
      });
      const { default: json } = (await import(join(folder, 'site', chunk))) as { default: string };
      // As VitePress loads it in the browser.
      const fields = ['title', 'titles', 'text'];
      index = MiniSearch.loadJSON(json, { fields, storeFields: ['title', 'titles'], searchOptions });
    });

    const pagesFor = (query: string) => index.search(query).map(({ id }) => String(id).split('#')[0]);

    it.each([
      ['retention', '/how-to/retention.html'],
      ['ffmpeg not found', '/how-to/troubleshooting.html'],
      ['rate limit', '/api.html'],
      ['upgrade', '/how-to/upgrade.html'],
    ])('has for "%s" the right page first', (query, page) => {
      expect(pagesFor(query)[0]).toBe(page);
    });

    it('leaves out the design and its history', () => {
      const design = /decisions|architecture/;
      for (const query of ['decision', 'architecture', 'landlock'])
        expect(pagesFor(query).filter((page) => design.test(page ?? ''))).toEqual([]);
      expect(pagesFor('landlock')).not.toEqual([]);
    });
  });

  it('has the references of both servers', async () => {
    for (const name of ['OpenAPI: the API', 'OpenAPI: the gateway']) {
      await page.goto(`${home}api.html`);
      await page.getByRole('link', { name }).first().click();
      await page.getByRole('heading', { name: 'Errors' }).waitFor();
    }
  });

  it('is dark where the visitor wants it', async () => {
    await page.goto(home);
    const background = () => page.evaluate('getComputedStyle(document.body).backgroundColor');
    const light = await background();
    await page.getByRole('switch').first().click();
    await page.locator('html.dark').waitFor();
    expect(await background()).not.toBe(light);
  });

  it.each(['light', 'dark'] as const)(
    'has nothing in it that axe-core finds serious: %s',
    async (colorScheme) => {
      const visitor = await browser.context.newPage();
      await visitor.emulateMedia({ colorScheme });
      // What another test chose does not count.
      await visitor.addInitScript('localStorage.clear()');
      const found: string[] = [];
      // The references are Scalar's: docs/decisions/0025-api-reference.md says what axe-core finds there.
      for (const place of ['', 'tutorial.html', 'api.html', 'reference/configuration.html']) {
        await visitor.goto(`${home}${place}`);
        found.push(...(await seriousFaults(visitor)).map((fault) => `${place}: ${fault}`));
      }
      await visitor.goto(home);
      expect(await visitor.locator('html.dark').count()).toBe(colorScheme === 'dark' ? 1 : 0);
      await visitor.close();
      expect(found).toEqual([]);
    },
  );

  it('asked nobody else for anything, and complained of nothing', () => {
    expect(complaints).toEqual([]);
  });
});

/** Whether a link of a built page leads to a file of the site, and to a place in it where it names one. */
function leads(
  from: string,
  target: string,
  html: ReadonlyMap<string, string>,
  files: ReadonlySet<string>,
): boolean {
  const [path = '', anchor] = decodeURI(target).split('#');
  const file = path === '' ? from : posix.join(dirname(from), path);
  const content = html.get(file);
  return (
    files.has(file) &&
    (anchor === undefined || anchor === '' || content === undefined || content.includes(`id="${anchor}"`))
  );
}
