/** What links a phone: the QR picture and, on request, a code to type instead. */
import { randomBytes } from 'node:crypto';
import type { AuthenticationCreds, BinaryNode } from 'baileys';
import { generate } from 'lean-qr';
import { toPngDataURL } from 'lean-qr/extras/node_export';
import type { Pairing } from 'soundpost-chat/transport';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import type { BaileysLibrary, WhatsAppSocket } from './library.ts';
import { asked } from './network-request.ts';
import { isPaired } from './session-store.ts';

/** Pixels per module, and the quiet zone in modules that ISO/IEC 18004 requires. */
const SCALE = 6;
const QUIET_ZONE = 4;

const CODE_TIMEOUT_MS = 20_000;

/** 428: Baileys' code for a connection that has ended. */
const codeMeanings = {
  428: ['network_refused', 'number: the connection ended before WhatsApp gave a pairing code; connect again'],
} as const;

interface PairingOptions {
  readonly socket: WhatsAppSocket;
  readonly library: Pick<BaileysLibrary, 'getBinaryNodeChild'>;
  /** Baileys' own object: what is changed here, it goes by. */
  readonly creds: AuthenticationCreds;
  readonly credsChanged: () => void;
  /** There is a new picture or code. */
  readonly changed: (pairing: Pairing) => void;
}

/** The pairing over one connection. */
export class PairingOffer {
  readonly #options: PairingOptions;
  #qr: string | undefined;
  #shown: Pairing | undefined;
  /** The secret in the picture; after a typed code Baileys puts another one into `creds`. */
  #secret: string;
  #code: { readonly number: string; readonly given: Promise<string> } | undefined;

  constructor(options: PairingOptions) {
    this.#options = options;
    this.#secret = options.creds.advSecretKey;
    options.socket.ws.on('CB:notification,type:companion_reg_refresh', () => this.#refresh());
  }

  get shown(): Pairing | undefined {
    return this.#shown;
  }

  /** @param qr the content of the picture, as Baileys gives it */
  show(qr: string): void {
    // Baileys goes on to make pictures for a moment after the phone has scanned one.
    if (isPaired(this.#options.creds)) {
      return;
    }
    this.#qr = qr;
    const code = withSecret(qr, this.#secret);
    this.#shown = {
      pairingCode: this.#shown?.pairingCode ?? null,
      code,
      base64: toPngDataURL(generate(code), { scale: SCALE, pad: QUIET_ZONE }),
      count: (this.#shown?.count ?? 0) + 1,
    };
    this.#options.changed(this.#shown);
  }

  /**
   * Asks for a code, once for a number, and waits until the server has taken it: Baileys does not.
   * Throws network_refused.
   * @param number digits of the phone
   */
  async requestCode(number: string): Promise<void> {
    if (this.#code?.number !== number) {
      this.#code = { number, given: this.#askForCode(number) };
    }
    const request = this.#code;
    try {
      const pairingCode = await request.given;
      if (request === this.#code && this.#shown !== undefined) {
        this.#shown = { ...this.#shown, pairingCode };
        this.#options.changed(this.#shown);
      }
    } catch (error) {
      if (request === this.#code) {
        this.#code = undefined;
      }
      throw error;
    }
  }

  /**
   * The server has retired the secret of the picture. WhatsApp Web makes a new one and shows it
   * with the same ref; Baileys 7.0.0-rc14 does nothing (Baileys#2737, #2765).
   */
  #refresh(): void {
    const { creds, credsChanged } = this.#options;
    // Once a phone has scanned the picture or taken a code, both know the secret: keep it.
    if (isPaired(creds) || creds.advSecretKey !== this.#secret) {
      return;
    }
    this.#secret = randomBytes(32).toString('base64');
    creds.advSecretKey = this.#secret;
    credsChanged();
    if (this.#qr !== undefined) {
      this.show(this.#qr);
    }
  }

  async #askForCode(number: string): Promise<string> {
    const { socket, library } = this.#options;
    const what = 'give a pairing code';
    // Baileys sends the request under its next tag, and does not wait for the answer.
    const tag = socket.generateMessageTag().replace(/\d+$/, (count) => String(Number(count) + 1));
    const answer = asked(what, socket.waitForMessage<BinaryNode>(tag, CODE_TIMEOUT_MS), codeMeanings);
    answer.catch(() => undefined);
    const code = await asked(what, socket.requestPairingCode(number), codeMeanings);
    const answered = await answer;
    const error = library.getBinaryNodeChild(answered, 'error')?.attrs;
    if (answered === undefined || answered.attrs.type === 'error') {
      const reason = answered === undefined ? 'no answer' : `${error?.code} ${error?.text}`;
      throw new GatewayError(
        'network_refused',
        `number: WhatsApp gave no pairing code for this number (${reason}); check it, or scan the picture that you get without a number`,
      );
    }
    return code;
  }
}

/** Baileys' `buildPairingQRData`: `…#ref,noise key,identity key,secret,platform`. */
function withSecret(qr: string, secret: string): string {
  const parts = qr.split(',');
  return parts.length < 5 ? qr : parts.with(-2, secret).join(',');
}
