/**
 * The package `baileys`, an unofficial client of WhatsApp. It is an optional peer dependency and is loaded when the first
 * instance of this kind asks for it; this folder is the only one that knows it.
 */
import type { BinaryNode, UserFacingSocketConfig, WASocket } from 'baileys';
import { GatewayError } from 'soundpost-contract/gateway-errors';

type SocketMethods =
  | 'end'
  | 'fetchBlocklist'
  | 'fetchPrivacySettings'
  | 'groupAcceptInvite'
  | 'groupFetchAllParticipating'
  | 'groupInviteCode'
  | 'groupMetadata'
  | 'groupRevokeInvite'
  | 'logout'
  | 'onWhatsApp'
  | 'readMessages'
  | 'rejectCall'
  | 'requestPairingCode'
  | 'sendMessage'
  | 'sendPresenceUpdate'
  | 'updateBlockStatus';

/** What this transport uses of a connection. A change of Baileys that concerns it is a fault of the compiler. */
export interface WhatsAppSocket extends Pick<WASocket, SocketMethods> {
  readonly ev: Pick<WASocket['ev'], 'process'>;
  /** The server's acknowledgement of a message, which Baileys itself passes on only when it is a refusal. */
  readonly ws: { on(event: 'CB:ack,class:message', listener: (node: BinaryNode) => void): unknown };
  readonly signalRepository: {
    readonly lidMapping: Pick<WASocket['signalRepository']['lidMapping'], 'getPNForLID'>;
  };
}

export interface BaileysLibrary
  extends Pick<
    typeof import('baileys'),
    | 'BufferJSON'
    | 'downloadContentFromMessage'
    | 'extractMessageContent'
    | 'fetchLatestWaWebVersion'
    | 'initAuthCreds'
    | 'proto'
  > {
  makeWASocket(config: UserFacingSocketConfig): WhatsAppSocket;
}

/**
 * The version of package.json; a test holds them together. `--save-prod` because npm would take the package for the
 * development dependency that it also is, and leave it out; `--no-save` changes no file.
 */
export const INSTALL_COMMAND =
  'npm install --no-save --save-prod --omit=dev --ignore-scripts baileys@7.0.0-rc14';

/** Throws unsupported, naming what to install. */
export async function loadBaileys(): Promise<BaileysLibrary> {
  let library: BaileysLibrary;
  try {
    library = await import('baileys');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND') {
      throw new GatewayError(
        'unsupported',
        `the whatsapp transport needs a package that is not installed; install it with: ${INSTALL_COMMAND}`,
        { cause: error },
      );
    }
    throw error;
  }
  muteSessionDumps();
  return library;
}

/** What is to be done before it can be loaded; undefined: nothing. */
export async function missingLibrary(): Promise<string | undefined> {
  try {
    await loadBaileys();
    return undefined;
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'unsupported') return error.messages.join('; ');
    throw error;
  }
}

let muted = false;

/**
 * libsignal, which Baileys stands on, prints whole sessions with their private keys to the console whenever it opens or
 * closes one. They must not reach anybody's logs.
 */
function muteSessionDumps(): void {
  if (muted) {
    return;
  }
  muted = true;
  for (const method of ['info', 'warn'] as const) {
    // biome-ignore lint/suspicious/noConsole: what somebody else prints is taken out, nothing is printed
    const print = console[method].bind(console);
    console[method] = (...values: unknown[]) => {
      if (!(typeof values[0] === 'string' && /\bsession\b/i.test(values[0]))) {
        print(...values);
      }
    };
  }
}
