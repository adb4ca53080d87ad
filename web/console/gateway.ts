/**
 * The messaging gateway, for managing its instances and picking whom to send to. It has a key of its own, asked for once: another tab gets it from
 * this one, and no tab keeps it longer than itself.
 */

import { type GatewayErrorAnswer, gatewayErrorCatalogue } from 'soundpost-contract/gateway-errors';
import type {
  ConnectionState,
  ConnectionStateAnswer,
  CreateInstanceRequest,
  InstanceSettings,
  ListedInstance,
  PairingAnswer,
  SetSettingsRequest,
  TransportKind,
} from 'soundpost-contract/gateway-instances';
import type { ContactRecord } from 'soundpost-contract/gateway-operations';
import type {
  MakeInstanceAnswer,
  SetWebhookRequest,
  WebhookAnswer,
} from 'soundpost-contract/gateway-webhooks';
import type { z } from 'zod';
import { isSignedIn } from './session.ts';

const STORE = 'soundpost.console.gateway';
const UNKNOWN_KEY =
  'The gateway does not accept this key. To print it, run on the gateway’s machine: soundpost keys gateway';

/** Where the service says that browsers reach its gateway; undefined where it has none of its own. */
export function gatewayAddress(): string | undefined {
  const address = document.querySelector<HTMLMetaElement>('meta[name="soundpost-gateway"]')?.content;
  return address === '' ? undefined : address;
}

export const gatewayKey = (): string | undefined => sessionStorage.getItem(STORE) ?? undefined;
const keepGatewayKey = (key: string): void => sessionStorage.setItem(STORE, key);

/** Tabs of this origin alone. An empty message asks for the key, another one is it. */
const tabs = new BroadcastChannel(STORE);
let onKey: () => void = () => undefined;

tabs.addEventListener('message', ({ data: key }: MessageEvent<string>) => {
  const known = gatewayKey();
  if (key === '' && known !== undefined) tabs.postMessage(known);
  if (key !== '' && known === undefined && isSignedIn()) {
    keepGatewayKey(key);
    onKey();
  }
});

// Not the form alone asks: who is sent to is picked elsewhere.
if (isSignedIn() && gatewayKey() === undefined) tabs.postMessage('');

/** @param listener called when another tab has it */
export function askTabsForGatewayKey(listener: () => void): void {
  onKey = listener;
  tabs.postMessage('');
}

/** When somebody signs out. */
export function forgetGateway(): void {
  sessionStorage.removeItem(STORE);
}

export interface GatewayInstance {
  readonly name: string;
  readonly status: ConnectionState;
  readonly transport: TransportKind;
  /** JID of its account; null while it is not known. */
  readonly ownerJid: string | null;
}

/** What `POST /instance/create` takes. */
export type NewInstance = z.input<typeof CreateInstanceRequest>;
export type Pairing = z.infer<typeof PairingAnswer>;
export type InstanceState = ConnectionStateAnswer['instance'];
type Webhook = WebhookAnswer['webhook'];

interface Calling {
  readonly signal?: AbortSignal | undefined;
}

/** Keeps a key that the gateway knows. @throws where it knows it not */
export async function tryGatewayKey(key: string): Promise<void> {
  // A header carries no other signs: fetch would fail as if nobody answered.
  if (!/^[\x21-\x7e]+$/.test(key)) throw new Error(UNKNOWN_KEY);
  keepGatewayKey(key);
  try {
    await gatewayInstances();
    tabs.postMessage(key);
  } catch (error) {
    forgetGateway();
    throw isKeyRefused(error) ? new Error(UNKNOWN_KEY) : error;
  }
}

/** All instances, the oldest first. */
export async function gatewayInstances(calling: Calling = {}): Promise<GatewayInstance[]> {
  const listed = await ask<z.infer<typeof ListedInstance>[]>('GET', '/instance/fetchInstances', calling);
  return listed.map(({ name, connectionStatus, transport, ownerJid }) => ({
    name,
    status: connectionStatus,
    transport,
    ownerJid,
  }));
}

export interface Person {
  readonly jid: string;
  readonly name: string;
  readonly isGroup: boolean;
}

/** Whom the instance can send to: its contacts and groups, by name. */
export async function peopleOf(instance: string, calling: Calling = {}): Promise<Person[]> {
  const found = await ask<ContactRecord[]>('POST', `/chat/findContacts/${part(instance)}`, {
    ...calling,
    json: {},
  });
  return found
    .map(({ id, pushName, isGroup }) => ({ jid: id, name: pushName, isGroup }))
    .sort((one, other) => one.name.localeCompare(other.name));
}

/** Its token is answered this once. */
export async function createInstance(
  wanted: NewInstance,
): Promise<{ readonly instance: GatewayInstance; readonly token: string }> {
  const answer = await ask<z.infer<typeof MakeInstanceAnswer>>('POST', '/instance/create', { json: wanted });
  const { instanceName: name, transport, status } = answer.instance;
  return { instance: { name, transport, status, ownerJid: null }, token: answer.hash };
}

/**
 * Connects the instance; where there is something to pair, what to pair it with.
 * @param number of the phone, for a code that can be typed on it
 */
export async function connectInstance(
  instance: string,
  number?: string,
): Promise<{ readonly pairing: Pairing } | { readonly state: InstanceState }> {
  const query = number === undefined ? '' : `?number=${encodeURIComponent(number)}`;
  const answer = await ask<Pairing | ConnectionStateAnswer>(
    'GET',
    `/instance/connect/${part(instance)}${query}`,
  );
  return 'instance' in answer ? { state: answer.instance } : { pairing: answer };
}

export async function instanceState(instance: string, calling: Calling = {}): Promise<InstanceState> {
  const path = `/instance/connectionState/${part(instance)}`;
  return (await ask<ConnectionStateAnswer>('GET', path, calling)).instance;
}

/** Takes it off its network; it keeps its name, token and settings. */
export const logoutInstance = (instance: string): Promise<void> =>
  ask('DELETE', `/instance/logout/${part(instance)}`);

/** With everything that belongs to it. */
export const deleteInstance = (instance: string): Promise<void> =>
  ask('DELETE', `/instance/delete/${part(instance)}`);

export const settingsOf = (instance: string, calling: Calling = {}): Promise<InstanceSettings> =>
  ask('GET', `/settings/find/${part(instance)}`, calling);

export const changeSettings = (
  instance: string,
  change: z.input<typeof SetSettingsRequest>,
): Promise<unknown> => ask('POST', `/settings/set/${part(instance)}`, { json: change });

/** Where the instance's events go; undefined: nowhere. */
export async function webhookOf(instance: string, calling: Calling = {}): Promise<Webhook | undefined> {
  return (await ask<WebhookAnswer | null>('GET', `/webhook/find/${part(instance)}`, calling))?.webhook;
}

export async function setWebhook(
  instance: string,
  webhook: z.input<typeof SetWebhookRequest>['webhook'],
): Promise<Webhook> {
  return (await ask<WebhookAnswer>('POST', `/webhook/set/${part(instance)}`, { json: { webhook } })).webhook;
}

/** An error of the gateway, which `sentence` of session.ts reads. */
interface GatewayFault extends Error {
  readonly httpStatus?: number;
  readonly details?: string;
}

/** Whether the key of the tab is missing or no longer good. */
export const isKeyRefused = (error: unknown): boolean =>
  error instanceof Error && (error as GatewayFault).httpStatus === 401;

interface Asked extends Calling {
  readonly json?: unknown;
}

async function ask<Answer>(method: string, path: string, { json, signal }: Asked = {}): Promise<Answer> {
  const response = await answerTo(path, {
    method,
    cache: 'no-store',
    ...(signal === undefined ? {} : { signal }),
    headers: {
      apikey: gatewayKey() ?? '',
      ...(json === undefined ? {} : { 'Content-Type': 'application/json' }),
    },
    ...(json === undefined ? {} : { body: JSON.stringify(json) }),
  });
  if (!response.ok) throw await faultOf(response);
  return (await response.json()) as Answer;
}

async function answerTo(path: string, init: RequestInit): Promise<Response> {
  const address = gatewayAddress();
  if (address === undefined) throw fault('This service has no built-in gateway.');
  try {
    return await fetch(`${address}${path}`, init);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw fault(`The gateway does not respond at ${address}`, {
      details: `Check that it is running and that browsers can reach it there (GATEWAY_PUBLIC_URL). Its CORS_ORIGINS may lack this page’s origin, ${location.origin}`,
    });
  }
}

async function faultOf(response: Response): Promise<GatewayFault> {
  const { status: httpStatus } = response;
  const told: GatewayErrorAnswer | undefined = await response.json().catch(() => undefined);
  const messages = told?.response?.message;
  if (told === undefined || messages === undefined) {
    return fault(`The gateway answered ${httpStatus}`, { httpStatus });
  }
  const details = gatewayErrorCatalogue[told.code]?.remedy;
  return fault(messages.join('; '), { httpStatus, ...(details === undefined ? {} : { details }) });
}

function fault(message: string, more: { httpStatus?: number; details?: string } = {}): GatewayFault {
  return Object.assign(new Error(message), more);
}

/** One segment of a path. */
const part = (name: string): string => encodeURIComponent(name);
