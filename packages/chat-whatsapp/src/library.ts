/**
 * The package `baileys`, an unofficial WhatsApp client. It is an optional peer dependency, loaded
 * when the first instance of this kind needs it. Only this folder depends on it.
 */
import type { AuthenticationCreds, BinaryNode, UserFacingSocketConfig, WASocket } from 'baileys';
import { GatewayError } from 'soundpost-contract/gateway-errors';

type SocketMethods =
  | 'end'
  | 'fetchBlocklist'
  | 'fetchPrivacySettings'
  | 'generateMessageTag'
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
  | 'updateBlockStatus'
  | 'waitForMessage';

type Stanza =
  /** The server's acknowledgement of a message; Baileys itself passes on only refusals. */
  | 'CB:ack,class:message'
  /** While pairing: the server no longer takes what the picture offers. */
  | 'CB:notification,type:companion_reg_refresh';

/** The methods used by this transport, so that a breaking change in Baileys fails the build. */
export interface WhatsAppSocket extends Pick<WASocket, SocketMethods> {
  readonly ev: Pick<WASocket['ev'], 'process'>;
  /** Stanzas that Baileys passes on by no event of its own. */
  readonly ws: { on(event: Stanza, listener: (node: BinaryNode) => void): unknown };
  readonly authState: {
    readonly creds: AuthenticationCreds;
    readonly keys: Pick<WASocket['authState']['keys'], 'set' | 'transaction'>;
  };
  readonly signalRepository: {
    readonly lidMapping: Pick<
      WASocket['signalRepository']['lidMapping'],
      'getLIDForPN' | 'storeLIDPNMappings'
    >;
  };
}

export interface BaileysLibrary
  extends Pick<
    typeof import('baileys'),
    | 'BufferJSON'
    | 'downloadContentFromMessage'
    | 'extractMessageContent'
    | 'fetchLatestWaWebVersion'
    | 'getBinaryNodeChild'
    | 'initAuthCreds'
    | 'jidDecode'
    | 'proto'
  > {
  makeWASocket(config: UserFacingSocketConfig): WhatsAppSocket;
}

/**
 * The version is that of package.json; a test compares them. `--save-prod`: otherwise npm treats
 * the package as a dev dependency and omits it. `--no-save` changes no file.
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

/** What to do before the library can be loaded; undefined: nothing. */
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
 * libsignal, which Baileys uses, prints whole sessions with private keys to the console when it
 * opens or closes one. They must not reach any log.
 */
function muteSessionDumps(): void {
  if (muted) {
    return;
  }
  muted = true;
  for (const method of ['info', 'warn'] as const) {
    // biome-ignore lint/suspicious/noConsole: filters what libsignal prints; prints nothing itself
    const print = console[method].bind(console);
    console[method] = (...values: unknown[]) => {
      if (!(typeof values[0] === 'string' && /\bsession\b/i.test(values[0]))) {
        print(...values);
      }
    };
  }
}
