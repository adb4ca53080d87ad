/** The device of somebody on the other side: its keys, and what it makes of what is encrypted for it, by libsignal as Baileys has it. */
import {
  type AuthenticationState,
  type BinaryNode,
  DEFAULT_CONNECTION_CONFIG,
  encodeWAMessage,
  initAuthCreds,
  proto,
  type SignalDataSet,
  type SignalDataTypeMap,
} from 'baileys';

const silent = {
  level: 'silent',
  child: () => silent,
  trace: () => undefined,
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

export class Device {
  readonly lid: string;
  readonly #state: AuthenticationState;
  readonly #signal: ReturnType<typeof DEFAULT_CONNECTION_CONFIG.makeSignalRepository>;
  /** Work on one session goes one after the other. */
  #work: Promise<unknown> = Promise.resolve();

  constructor(lid: string) {
    this.lid = lid;
    const kept = new Map<string, unknown>();
    this.#state = {
      creds: initAuthCreds(),
      keys: {
        async get<Type extends keyof SignalDataTypeMap>(type: Type, ids: string[]) {
          const found: { [id: string]: SignalDataTypeMap[Type] } = {};
          for (const id of ids) {
            const value = kept.get(`${type} ${id}`);
            if (value !== undefined) found[id] = value as SignalDataTypeMap[Type];
          }
          return found;
        },
        async set(data: SignalDataSet) {
          for (const [type, values] of Object.entries(data)) {
            for (const [id, value] of Object.entries(values ?? {})) kept.set(`${type} ${id}`, value);
          }
        },
        isInTransaction: () => false,
        transaction: async (work: () => Promise<unknown>) => work(),
      } as unknown as AuthenticationState['keys'],
    };
    this.#signal = DEFAULT_CONNECTION_CONFIG.makeSignalRepository(
      this.#state as Parameters<typeof DEFAULT_CONNECTION_CONFIG.makeSignalRepository>[0],
      silent,
      async () => undefined,
    );
  }

  /** What a sender needs for its first message; without a key for once, which the protocol does not demand. */
  bundle(): BinaryNode[] {
    const { registrationId, signedIdentityKey, signedPreKey } = this.#state.creds;
    const number = (value: number, bytes: number): Buffer => {
      const buffer = Buffer.alloc(bytes);
      buffer.writeUIntBE(value, 0, bytes);
      return buffer;
    };
    const node = (tag: string, content: Uint8Array): BinaryNode => ({ tag, attrs: {}, content });
    return [
      node('registration', number(registrationId, 4)),
      node('type', Buffer.from([5])),
      node('identity', signedIdentityKey.public),
      {
        tag: 'skey',
        attrs: {},
        content: [
          node('id', number(signedPreKey.keyId, 3)),
          node('value', signedPreKey.keyPair.public),
          node('signature', signedPreKey.signature),
        ],
      },
    ];
  }

  /** For somebody whose message it has decrypted. @param to their device’s JID */
  encrypt(to: string, message: proto.IMessage): Promise<{ type: 'pkmsg' | 'msg'; ciphertext: Uint8Array }> {
    const done = this.#work.then(() =>
      this.#signal.encryptMessage({ jid: to, data: encodeWAMessage(message) }),
    );
    this.#work = done.catch(() => undefined);
    return done;
  }

  /** @param from JID of the sender’s device */
  decrypt(from: string, enc: BinaryNode, group?: string): Promise<proto.IMessage> {
    const done = this.#work.then(async () => {
      const ciphertext = enc.content as Uint8Array;
      const type = enc.attrs.type;
      const padded =
        type === 'skmsg' && group !== undefined
          ? await this.#signal.decryptGroupMessage({ group, authorJid: from, msg: ciphertext })
          : await this.#signal.decryptMessage({ jid: from, type: type as 'pkmsg' | 'msg', ciphertext });
      const message = proto.Message.decode(padded.subarray(0, padded.length - (padded.at(-1) ?? 0)));
      const key = message.senderKeyDistributionMessage;
      if (key) await this.#signal.processSenderKeyDistributionMessage({ item: key, authorJid: from });
      return message;
    });
    this.#work = done.catch(() => undefined);
    return done;
  }
}
