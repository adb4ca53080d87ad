/** What others wrote is parsed by packages/base/src/json.ts alone, which looks at its shape before. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { projectFolder } from './planted-tree.ts';

/** `JSON.parse`, also handed on as a function, and the body of a Response. */
const PARSES = /\bJSON\.parse\b|\bparse\b[^;{}]*\} = JSON\b|\.json\(\)/g;

/** How often each file parses without that look, by the reason why it may. */
const exceptions: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  'the check itself, and what calls its half before this one': {
    'packages/base/src/json.ts': 1,
    'packages/kit/src/http/json-body.ts': 1,
  },
  'this service wrote it, from values that were checked: into Redis, its storage, its log': {
    'packages/chat-whatsapp/src/address-book.ts': 4,
    'packages/chat-whatsapp/src/kept-messages.ts': 1,
    'packages/chat-whatsapp/src/session-store.ts': 3,
    'packages/kit/src/http/idempotency.ts': 1,
    'packages/kit/src/redis/record.ts': 1,
    'src/api/openai/formats.ts': 1,
    'src/cli/doctor.ts': 1,
    'src/gateway/webhooks/event-kinds.ts': 2,
    'src/jobs/destinations.ts': 1,
    'src/jobs/job-record.ts': 2,
    'src/jobs/open-worker.ts': 1,
    'src/jobs/submission-journal.ts': 1,
    'src/process/marks.ts': 1,
  },
  'it belongs to the code: package.json, the OpenAPI document, the list of the packaged tools': {
    'packages/kit/src/http/openapi/document.ts': 1,
    'packages/media/src/index.ts': 1,
    'packages/media/src/packaged-tools.ts': 1,
    'src/process/config.ts': 1,
  },
  'it runs in a program of its user, who chose the service that answers': {
    'packages/client/src/connection.ts': 1,
    'packages/client/src/events.ts': 1,
    'packages/client/src/wait.ts': 1,
    'packages/client/src/webhook.ts': 1,
  },
};

const parsesIn = (text: string): number => text.match(PARSES)?.length ?? 0;

it('every other file parses by it', () => {
  const files = globSync('{src,packages/*/src}/**/*.ts', { cwd: projectFolder }).filter(
    (path) => !path.startsWith('packages/testing/'),
  );
  expect(files.length).toBeGreaterThan(300);
  const found = files
    .map((path) => [path, parsesIn(readFileSync(join(projectFolder, path), 'utf8'))] as const)
    .filter(([, count]) => count > 0);
  expect(Object.fromEntries(found)).toEqual(Object.assign({}, ...Object.values(exceptions)));
});

it.each([
  'const answer = await response.json();',
  'return Answer.parse(JSON.parse(body));',
  'lines.map(JSON.parse)',
  'const { parse } = JSON;',
])('%s is noticed', (breach) => {
  expect(parsesIn(breach)).toBe(1);
});
