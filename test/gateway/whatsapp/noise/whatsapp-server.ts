/**
 * A server of WhatsApp's on this machine, as far as the unmodified Baileys needs one: it pairs a device with a phone, hands out keys, takes messages and uploads,
 * and lets people on the other side decrypt what they are sent. What it answers follows from what the client reads.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import {
  type BinaryNode,
  Curve,
  getBinaryNodeChild,
  getBinaryNodeChildren,
  hmacSign,
  type proto as Proto,
  proto,
} from 'baileys';
import { receivedBody } from 'soundpost-testing/received-body';
import { WebSocketServer } from 'ws';
import { Device } from './device.ts';
import { type Authority, makeAuthority, NoiseLine } from './noise-line.ts';

export interface Person {
  readonly jid: string;
  readonly device: Device;
}

export interface Group {
  readonly jid: string;
  readonly subject: string;
  /** JIDs with their rank. */
  readonly members: Map<string, 'superadmin' | 'admin' | undefined>;
  code: string;
  /** The disappearing timer, s. */
  readonly timer?: number;
}

/** What somebody got. */
export interface Received {
  readonly id: string;
  readonly to: string;
  /** Of the stanza. */
  readonly attrs: BinaryNode['attrs'];
  /** Of a group's message: the id of its sender key. */
  readonly keyId?: number | null | undefined;
  readonly by: string;
  readonly message: Proto.IMessage;
}

const SERVER = 's.whatsapp.net';
const node = (tag: string, attrs: BinaryNode['attrs'] = {}, content?: BinaryNode['content']): BinaryNode => ({
  tag,
  attrs,
  ...(content === undefined ? {} : { content }),
});

export class WhatsAppServer {
  readonly authority: Authority = makeAuthority();
  readonly people = new Map<string, Person>();
  readonly groups = new Map<string, Group>();
  readonly blocked = new Set<string>();
  readonly received: Received[] = [];
  /** What is not a query: presences, receipts, … */
  readonly nodes: BinaryNode[] = [];
  /** Encrypted media by its path. */
  readonly media = new Map<string, Buffer>();
  readonly lines = new Set<NoiseLine>();
  /** Queries that it had no answer of its own for. */
  readonly unknown: string[] = [];
  /** Groups that were asked for, one by one. */
  readonly groupQueries: string[] = [];
  /** How it refuses pairing codes. */
  refusesCode: { code: string; text: string } | undefined;
  /** The error of the acknowledgement of messages to this JID. */
  refuses: (to: string) => string | undefined = () => undefined;
  /** Versions that it refuses with 405. */
  refusesVersion: (version: readonly number[]) => boolean = () => false;
  /** Asked before a message is taken: true breaks the line in its place. */
  cuts: (id: string, at: 'before' | 'after') => boolean = () => false;
  /** The account that pairs. */
  readonly account: { jid: string; lid: string; key: ReturnType<typeof Curve.generateKeyPair> };
  readonly #server: Server;
  readonly #retired = new Set<string>();

  constructor(account: string, tls: { cert: Buffer; key: Buffer }) {
    this.account = {
      jid: `${account}:1@${SERVER}`,
      lid: `9${account}:1@lid`,
      key: Curve.generateKeyPair(),
    };
    this.#server = createServer(tls, async (request, response) => {
      const path = `/v${request.url?.split('?')[0]}`;
      const bytes = await receivedBody(request);
      if (bytes === undefined) return;
      this.media.set(path, bytes);
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ url: `https://${this.host}${path}`, direct_path: path }));
    });
    new WebSocketServer({ server: this.#server }).on('connection', (socket) => {
      const line = new NoiseLine(socket, this.authority);
      this.lines.add(line);
      socket.on('close', () => this.lines.delete(line));
      line.onNode = (received) => void this.#take(line, received);
      void line.ready.then(() => this.#greet(line));
    });
  }

  async start(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  /** Of its WebSocket and of uploads. */
  get host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    for (const line of this.lines) line.cut();
    this.#server.close();
    this.#server.closeAllConnections();
  }

  addPerson(digits: string): Person {
    return this.#add(`${digits}@${SERVER}`, `9${digits}@lid`);
  }

  /** Somebody whose number nobody sees. */
  addPersonByLid(digits: string): Person {
    const jid = `${digits}@lid`;
    return this.#add(jid, jid);
  }

  #add(jid: string, lid: string): Person {
    const person = { jid, device: new Device(lid) };
    this.people.set(jid, person);
    return person;
  }

  addGroup(
    id: string,
    subject: string,
    members: Readonly<Record<string, 'superadmin' | 'admin' | undefined>>,
    timer?: number,
  ): Group {
    const group: Group = {
      jid: `${id}@g.us`,
      subject,
      members: new Map(Object.entries(members)),
      code: randomBytes(11).toString('base64url'),
      ...(timer === undefined ? {} : { timer }),
    };
    this.groups.set(group.jid, group);
    return group;
  }

  /** The secret of a picture that is shown is good no more; the client is told. */
  retirePicture(qr: string): void {
    this.#retired.add(qr.split(',')[3] ?? '');
    const attrs = { from: SERVER, type: 'companion_reg_refresh', id: randomUUID(), t: '1700000000' };
    for (const line of this.lines) line.send(node('notification', attrs, [node('companion_reg_refresh')]));
  }

  /** Somebody is put out of a group. */
  removeMember(group: Group, jid: string): void {
    group.members.delete(jid);
    const { jid: participant } = this.account;
    const attrs = { from: group.jid, type: 'w:gp2', id: randomUUID(), t: '1700000000', participant };
    for (const line of this.lines) {
      line.send(node('notification', attrs, [node('remove', {}, [node('participant', { jid })])]));
    }
  }

  /**
   * Somebody answers whom the client has written to before: the session is already there.
   * @param number their JID, where WhatsApp tells it
   */
  async say(person: Person, message: Proto.IMessage, number?: string): Promise<string> {
    const { lid } = person.device;
    const id = randomBytes(8).toString('hex').toUpperCase();
    const to = lid.endsWith('@lid') ? this.account.lid : this.account.jid;
    const { type, ciphertext } = await person.device.encrypt(to, message);
    const attrs = {
      ...{ from: lid, id, type: 'text', t: String(Math.floor(Date.now() / 1000)), notify: 'Somebody' },
      ...(number === undefined ? {} : { sender_pn: number }),
    };
    for (const line of this.lines) {
      line.send(node('message', attrs, [node('enc', { v: '2', type }, ciphertext)]));
    }
    return id;
  }

  /** The phone scans what the client shows. */
  scan(qr: string): void {
    const [, , identity = '', adv = ''] = qr.split(',');
    if (this.#retired.has(adv)) throw new Error('the phone could not link the device');
    const details = proto.ADVDeviceIdentity.encode({ rawId: 1, timestamp: 1, keyIndex: 1 }).finish();
    const signed = Buffer.concat([Buffer.from([6, 0]), details, Buffer.from(identity, 'base64')]);
    const { jid, lid, key } = this.account;
    const account = proto.ADVSignedDeviceIdentity.encode({
      details,
      accountSignatureKey: key.public,
      accountSignature: Curve.sign(key.private, signed),
    }).finish();
    const content = proto.ADVSignedDeviceIdentityHMAC.encode({
      details: account,
      hmac: hmacSign(account, Buffer.from(adv, 'base64')),
    }).finish();
    for (const line of this.lines) {
      line.send(
        node('iq', { from: SERVER, type: 'set', id: 'pair-2' }, [
          node('pair-success', {}, [
            node('device-identity', {}, content),
            node('device', { jid, lid }),
            node('platform', { name: 'android' }),
          ]),
        ]),
      );
    }
  }

  /** Receipts of whoever got a message. */
  receipt(id: string, from: string, type?: 'read' | 'played'): void {
    for (const line of this.lines) {
      line.send(node('receipt', { from, id, t: '1700000000', ...(type ? { type } : {}) }));
    }
  }

  #greet(line: NoiseLine): void {
    const { userAgent, username } = line.hello;
    const { primary, secondary, tertiary } = userAgent?.appVersion ?? {};
    if (this.refusesVersion([primary ?? 0, secondary ?? 0, tertiary ?? 0])) {
      line.send(node('failure', { reason: '405', location: 'test' }));
      return;
    }
    if (username) {
      line.send(node('success', { t: '1700000000', lid: this.account.lid }));
      line.send(node('ib', { from: SERVER }, [node('offline', { count: '0' })]));
      return;
    }
    // Text, as the picture has it between commas: of random bytes one in 16 would hold a comma.
    const refs = Array.from({ length: 6 }, () =>
      node('ref', {}, Buffer.from(`2@${randomBytes(16).toString('base64')}`)),
    );
    line.send(node('iq', { from: SERVER, type: 'set', id: 'pair-1' }, [node('pair-device', {}, refs)]));
  }

  async #take(line: NoiseLine, received: BinaryNode): Promise<void> {
    const { tag, attrs } = received;
    if (tag === 'iq' && attrs.type === 'result') {
      // Paired: the client has to come again, as who it is now.
      if (attrs.id === 'pair-2') line.send(node('stream:error', { code: '515' }));
    } else if (tag === 'iq') {
      const content = this.#answer(received);
      const type = content[0]?.tag === 'error' ? 'error' : 'result';
      line.send(node('iq', { from: attrs.to ?? SERVER, type, id: attrs.id ?? '' }, content));
    } else if (tag === 'message') {
      await this.#message(line, received);
    } else {
      this.nodes.push(received);
    }
  }

  #answer(query: BinaryNode): BinaryNode[] {
    const { xmlns = '', type, to = '' } = query.attrs;
    const [child] = Array.isArray(query.content) ? query.content : [];
    switch (`${xmlns} ${type} ${child?.tag ?? ''}`.trim()) {
      case 'encrypt get count':
        return [node('count', { value: '50' })];
      case 'encrypt get digest':
        return [node('digest')];
      case 'encrypt get key':
        return [
          node(
            'list',
            {},
            getBinaryNodeChildren(child, 'user').flatMap((user) => this.#keys(user)),
          ),
        ];
      case 'usync get usync':
        return [this.#usync(child)];
      case 'w:m set media_conn':
        return [
          node('media_conn', { auth: 'auth', ttl: '3600' }, [
            node('host', { hostname: this.host, maxContentLengthBytes: '104857600' }),
          ]),
        ];
      case 'blocklist get':
        return [
          node(
            'list',
            {},
            [...this.blocked].map((jid) => node('item', { jid })),
          ),
        ];
      case 'blocklist set item': {
        const { action, jid = '' } = child?.attrs ?? {};
        if (action === 'block') this.blocked.add(jid);
        else this.blocked.delete(jid);
        return [];
      }
      case 'privacy get privacy':
        return [
          node(
            'privacy',
            {},
            Object.entries(PRIVACY).map(([name, value]) => node('category', { name, value })),
          ),
        ];
      case 'w:g2 get participating':
        return [node('groups', {}, [...this.groups.values()].map(groupNode))];
      case 'md set link_code_companion_reg': {
        const ref = node('link_code_pairing_ref', {}, randomBytes(8));
        return [
          this.refusesCode
            ? node('error', { ...this.refusesCode })
            : node('link_code_companion_reg', { stage: 'companion_hello' }, [ref]),
        ];
      }
      case 'w:g2 get query': {
        this.groupQueries.push(to);
        const group = this.groups.get(to);
        return [group ? groupNode(group) : node('error', { code: '404', text: 'item-not-found' })];
      }
      case 'w:g2 get invite':
        return [node('invite', { code: this.groups.get(to)?.code ?? '' })];
      case 'w:g2 set invite':
        return this.#invite(to, child);
      default:
        if (!HARMLESS.has(xmlns)) this.unknown.push(`${xmlns} ${type} ${child?.tag}`);
        return [];
    }
  }

  #invite(to: string, child: BinaryNode | undefined): BinaryNode[] {
    const code = child?.attrs.code;
    if (code !== undefined) {
      const group = [...this.groups.values()].find((one) => one.code === code);
      return [group ? node('group', { jid: group.jid }) : node('error', { code: '404' })];
    }
    const group = this.groups.get(to);
    if (group) group.code = randomBytes(11).toString('base64url');
    return [node('invite', { code: group?.code ?? '' })];
  }

  #personOf(jid: string): Person | undefined {
    const user = jid.split('@')[0]?.split(':')[0];
    return [...this.people.values()].find(
      (person) => person.jid.startsWith(`${user}@`) || person.device.lid.startsWith(`${user}@`),
    );
  }

  #keys({ attrs: { jid = '' } }: BinaryNode): BinaryNode[] {
    const person = this.#personOf(jid);
    return person ? [node('user', { jid }, person.device.bundle())] : [];
  }

  #usync(usync: BinaryNode | undefined): BinaryNode {
    const asked = getBinaryNodeChildren(getBinaryNodeChild(usync, 'query') ?? undefined, 'lid').length;
    const users = getBinaryNodeChildren(getBinaryNodeChild(usync, 'list') ?? undefined, 'user');
    const list = users.map((user) => {
      const phone = getBinaryNodeChild(user, 'contact')?.content?.toString().replace('+', '');
      const jid = user.attrs.jid ?? `${phone}@${SERVER}`;
      const person = this.#personOf(jid);
      const isOwn =
        jid.startsWith(this.account.jid.split(':')[0] ?? '-') ||
        jid.startsWith(this.account.lid.split(':')[0] ?? '-');
      const lid = person?.device.lid ?? (isOwn ? `${this.account.lid.split(':')[0]}@lid` : undefined);
      return node('user', { jid }, [
        node('contact', { type: person || isOwn ? 'in' : 'out' }),
        ...(asked > 0 && lid?.endsWith('@lid') && lid !== jid ? [node('lid', { val: lid })] : []),
        node('devices', {}, [
          node('device-list', {}, [node('device', { id: isOwn ? '1' : '0', 'key-index': '1' })]),
        ]),
      ]);
    });
    return node('usync', {}, [node('list', {}, list)]);
  }

  async #message(line: NoiseLine, stanza: BinaryNode): Promise<void> {
    const { id = '', to = '', type = 'text' } = stanza.attrs;
    if (this.cuts(id, 'before')) {
      line.cut();
      return;
    }
    const error = this.refuses(to);
    if (error !== undefined) {
      line.send(node('ack', { class: 'message', id, from: to, type, t: '1700000000', error }));
      this.nodes.push(stanza);
      return;
    }
    await this.#deliver(stanza);
    if (this.cuts(id, 'after')) {
      line.cut();
      return;
    }
    line.send(node('ack', { class: 'message', id, from: to, type, t: '1700000000' }));
  }

  async #deliver(stanza: BinaryNode): Promise<void> {
    const { id = '', to = '' } = stanza.attrs;
    const { jid: own, lid: ownLid } = this.account;
    const group = this.groups.get(to);
    for (const participant of getBinaryNodeChildren(getBinaryNodeChild(stanza, 'participants'), 'to')) {
      const { jid = '' } = participant.attrs;
      const person = this.#personOf(jid);
      const enc = getBinaryNodeChild(participant, 'enc');
      if (person === undefined || enc === undefined) continue;
      const message = await person.device.decrypt(jid.endsWith('@lid') ? ownLid : own, enc);
      if (group === undefined) this.received.push({ id, to, by: person.jid, attrs: stanza.attrs, message });
    }
    const shared = getBinaryNodeChild(stanza, 'enc');
    if (group === undefined || shared === undefined) return;
    // A byte of version before it, and a signature of 64 bytes after it.
    const { id: keyId } = proto.SenderKeyMessage.decode((shared.content as Uint8Array).subarray(1, -64));
    for (const person of [...group.members.keys()].flatMap((jid) => this.people.get(jid) ?? [])) {
      const message = await person.device.decrypt(own, shared, group.jid);
      this.received.push({ id, to, by: person.jid, attrs: stanza.attrs, keyId, message });
    }
  }
}

const PRIVACY = {
  readreceipts: 'all',
  profile: 'contacts',
  status: 'contact_blacklist',
  online: 'match_last_seen',
  last: 'none',
  groupadd: 'contacts',
};

/** What needs no more than an empty answer. */
const HARMLESS = new Set([
  'encrypt',
  'privacy',
  'passive',
  'abt',
  'w:stats',
  'w:p',
  'w:sync:app:state',
  'urn:xmpp:whatsapp:dirty',
  'w:mex',
  'md',
]);

function groupNode({ jid, subject, members, timer }: Group): BinaryNode {
  return node(
    'group',
    {
      id: jid.split('@')[0] ?? '',
      subject,
      s_t: '1700000000',
      creation: '1700000000',
      addressing_mode: 'pn',
    },
    [
      ...(timer === undefined ? [] : [node('ephemeral', { expiration: String(timer) })]),
      ...[...members].map(([member, type]) =>
        node('participant', { jid: member, ...(type ? { type } : {}) }),
      ),
    ],
  );
}
