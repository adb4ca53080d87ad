/** Which transport has which operation, read out of the classes that implement Session. */
import { globSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { code, markdownTable } from './markdown-table.ts';

/** By what a caller does: the member of Session for it, or the field that it may not lack. */
const operations: readonly (readonly [operation: string, member: string])[] = [
  ['Send a voice message', 'sendVoice'],
  ['Send a text', 'sendText'],
  ['Mention people', 'mentioned'],
  ['Mention everybody', 'mentionsEveryOne'],
  ['Change a message', 'editMessage'],
  ['Send a group invite', 'sendInvite'],
  ['Show a presence', 'showPresence'],
  ['Block a contact', 'setBlocked'],
  ['List contacts and chats', 'contacts'],
  ['Fetch an invite code', 'inviteCode'],
  ['Renew an invite code', 'revokeInvite'],
  ['Enter a group by its code', 'acceptInvite'],
  ['List the members of a group', 'participants'],
  ['Fetch privacy settings', 'privacySettings'],
  ['Reject calls', 'rejectCall'],
  ['Pair with a phone', 'pairing'],
];

const SESSION = /^export class \w+ implements Session \{$/m;
const KIND = /^ {4}kind: '([\w-]+)',$/m;
/** A method of a class, as biome formats it. */
const MEMBER = /^ {2}(?:async )?(\w+)\(/gm;
const LACKS = /^ {2}readonly lacks = \[(.*)\]/m;
const FIELDS = ['mentioned', 'mentionsEveryOne'];

export function transportTable(): string {
  const transports = sessions();
  return markdownTable(
    ['Operation', ...transports.map(({ kind }) => code(kind))],
    operations.map(([operation, member]) => [
      operation,
      ...transports.map(({ members }) => (members.has(member) ? 'yes' : '501')),
    ]),
  );
}

function sessions(): { kind: string; members: ReadonlySet<string> }[] {
  const files = globSync('{packages/*,src/gateway}/**/*.ts', {
    exclude: ['**/node_modules/**', '**/test/**'],
  });
  const found = files.toSorted().flatMap((file) => {
    const text = readFileSync(file, 'utf8');
    const start = text.search(SESSION);
    if (start < 0) return [];
    const members = [...text.slice(start).matchAll(MEMBER)].map(([, name = '']) => name);
    const lacks = LACKS.exec(text)?.[1] ?? '';
    const fields = FIELDS.filter((field) => !lacks.includes(`'${field}'`));
    return [{ kind: kindOf(dirname(file)), members: new Set([...members, ...fields]) }];
  });
  return found.toSorted((one, other) => one.kind.localeCompare(other.kind));
}

/** As the transport beside the session says. */
function kindOf(folder: string): string {
  const texts = globSync(`${folder}/*transport.ts`).map((file) => readFileSync(file, 'utf8'));
  const kind = texts.map((text) => KIND.exec(text)?.[1]).find((one) => one !== undefined);
  if (kind === undefined) throw new Error(`no transport stands beside the session in ${folder}`);
  return kind;
}
