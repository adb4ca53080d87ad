/**
 * The server's side of WhatsApp's connection: a Noise handshake (Noise_XX_25519_AESGCM_SHA256) over a WebSocket, then encrypted binary nodes. Written from
 * what the client does; keys and nodes are Baileys' own.
 */
import {
  aesDecryptGCM,
  aesEncryptGCM,
  type BinaryNode,
  Curve,
  decodeBinaryNode,
  encodeBinaryNode,
  hkdf,
  NOISE_MODE,
  NOISE_WA_HEADER,
  proto,
  sha256,
} from 'baileys';
import type { WebSocket } from 'ws';

const NOTHING = Buffer.alloc(0);

/** Who vouches for the server: the client is told its public key in the place of WhatsApp's. */
export interface Authority {
  readonly publicKey: Uint8Array;
  readonly chain: Uint8Array;
  readonly server: ReturnType<typeof Curve.generateKeyPair>;
}

export function makeAuthority(): Authority {
  const root = Curve.generateKeyPair();
  const intermediate = Curve.generateKeyPair();
  const server = Curve.generateKeyPair();
  const { NoiseCertificate } = proto.CertChain;
  const details = (serial: number, key: Uint8Array): Uint8Array =>
    NoiseCertificate.Details.encode({ serial, issuerSerial: 0, key }).finish();
  const middle = details(1, intermediate.public);
  const leaf = details(2, server.public);
  const chain = proto.CertChain.encode({
    intermediate: { details: middle, signature: Curve.sign(root.private, middle) },
    leaf: { details: leaf, signature: Curve.sign(intermediate.private, leaf) },
  }).finish();
  return { publicKey: root.public, chain, server };
}

/** A connection once its handshake is done. */
export class NoiseLine {
  /** What the client says of itself: a login names its account, a registration its keys. */
  hello: proto.IClientPayload = {};
  onNode: (node: BinaryNode) => void = () => undefined;
  readonly #socket: WebSocket;
  readonly #authority: Authority;
  readonly #ephemeral = Curve.generateKeyPair();
  #bytes = NOTHING;
  #isIntroduced = false;
  #hash: Buffer;
  #salt: Buffer;
  #key: Buffer;
  #counter = 0;
  #transport: { send: Uint8Array; receive: Uint8Array; sent: number; received: number } | undefined;
  #work: Promise<unknown> = Promise.resolve();
  readonly ready: Promise<void>;
  #isReady: () => void;

  constructor(socket: WebSocket, authority: Authority) {
    this.#socket = socket;
    this.#authority = authority;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ready = promise;
    this.#isReady = resolve;
    this.#hash = Buffer.from(NOISE_MODE);
    this.#salt = this.#hash;
    this.#key = this.#hash;
    socket.on('message', (data: Buffer) => {
      this.#work = this.#work.then(() => this.#take(data)).catch(() => socket.terminate());
    });
  }

  send(node: BinaryNode): void {
    if (this.#transport === undefined || this.#socket.readyState !== this.#socket.OPEN) return;
    const { send } = this.#transport;
    const iv = ivOf(this.#transport.sent++);
    this.#write(aesEncryptGCM(encodeBinaryNode(node), send, iv, NOTHING));
  }

  close(): void {
    this.#socket.close();
  }

  /** Ends it as a line that breaks does. */
  cut(): void {
    this.#socket.terminate();
  }

  #write(frame: Uint8Array): void {
    const size = Buffer.alloc(3);
    size.writeUIntBE(frame.length, 0, 3);
    this.#socket.send(Buffer.concat([size, frame]));
  }

  async #take(data: Buffer): Promise<void> {
    this.#bytes = Buffer.concat([this.#bytes, data]);
    if (!this.#isIntroduced) {
      const begins = this.#bytes.indexOf(NOISE_WA_HEADER);
      if (begins < 0) return;
      this.#bytes = this.#bytes.subarray(begins + NOISE_WA_HEADER.length);
      this.#isIntroduced = true;
      this.#authenticate(NOISE_WA_HEADER);
    }
    while (this.#bytes.length >= 3) {
      const size = this.#bytes.readUIntBE(0, 3);
      if (this.#bytes.length < size + 3) return;
      const frame = this.#bytes.subarray(3, size + 3);
      this.#bytes = this.#bytes.subarray(size + 3);
      await this.#frame(frame);
    }
  }

  async #frame(frame: Buffer): Promise<void> {
    if (this.#transport !== undefined) {
      const iv = ivOf(this.#transport.received++);
      const plain = aesDecryptGCM(frame, this.#transport.receive, iv, NOTHING);
      this.onNode(await decodeBinaryNode(plain));
      return;
    }
    const { clientHello, clientFinish } = proto.HandshakeMessage.decode(frame);
    if (clientHello?.ephemeral) this.#answerHello(clientHello.ephemeral);
    if (clientFinish?.static && clientFinish.payload) this.#finish(clientFinish.static, clientFinish.payload);
  }

  #answerHello(client: Uint8Array): void {
    const { server, chain } = this.#authority;
    this.#authenticate(client);
    this.#authenticate(this.#ephemeral.public);
    this.#mix(Curve.sharedKey(this.#ephemeral.private, client));
    const encryptedKey = this.#encrypt(server.public);
    this.#mix(Curve.sharedKey(server.private, client));
    const payload = this.#encrypt(chain);
    const serverHello = { ephemeral: this.#ephemeral.public, static: encryptedKey, payload };
    this.#write(proto.HandshakeMessage.encode({ serverHello }).finish());
  }

  #finish(encryptedKey: Uint8Array, payload: Uint8Array): void {
    const key = this.#decrypt(encryptedKey);
    this.#mix(Curve.sharedKey(this.#ephemeral.private, key));
    this.hello = proto.ClientPayload.decode(this.#decrypt(payload));
    const [receive, send] = this.#expand(NOTHING);
    this.#transport = { receive, send, sent: 0, received: 0 };
    this.#isReady();
  }

  #authenticate(data: Uint8Array): void {
    this.#hash = sha256(Buffer.concat([this.#hash, data]));
  }

  #encrypt(plain: Uint8Array): Buffer {
    const result = aesEncryptGCM(plain, this.#key, ivOf(this.#counter++), this.#hash);
    this.#authenticate(result);
    return result;
  }

  #decrypt(encrypted: Uint8Array): Buffer {
    const result = aesDecryptGCM(encrypted, this.#key, ivOf(this.#counter++), this.#hash);
    this.#authenticate(encrypted);
    return result;
  }

  #expand(data: Uint8Array): [Buffer, Buffer] {
    const keys = Buffer.from(hkdf(Buffer.from(data), 64, { salt: this.#salt, info: '' }));
    return [keys.subarray(0, 32), keys.subarray(32)];
  }

  #mix(shared: Uint8Array): void {
    const [salt, key] = this.#expand(shared);
    this.#salt = salt;
    this.#key = key;
    this.#counter = 0;
  }
}

function ivOf(counter: number): Buffer {
  const iv = Buffer.alloc(12);
  iv.writeUInt32BE(counter, 8);
  return iv;
}
