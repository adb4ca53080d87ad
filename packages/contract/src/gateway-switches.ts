/**
 * Fields of the public server (2.3.6) that change what it does, and that this gateway does not do.
 * Unknown fields are ignored, but none of these: a caller who sets one relies on it (decisions B).
 */

interface Switch {
  /** Name of the field, or its beginning. */
  readonly name: RegExp;
  readonly remedy: string;
}

const EVENTS = 'events go to the webhook only; leave it out, or set enabled to false';
const ELSEWHERE = 'this gateway has no such integration; leave it out';

const ofSettings: readonly Switch[] = [
  { name: /^wavoip/i, remedy: 'calls cannot be answered; leave it out' },
];

const ofInstances: readonly Switch[] = [
  ...ofSettings,
  { name: /^proxy/i, remedy: 'an instance has no proxy of its own; OUTBOUND_PROXY sets the gateway’s proxy' },
  { name: /^(websocket|sqs|rabbitmq|nats|kafka|pusher)/i, remedy: EVENTS },
  { name: /^(chatwoot|typebot|openai|dify|flowise|evoai|evolutionbot|n8n)/i, remedy: ELSEWHERE },
  { name: /^webhook.+/i, remedy: 'use webhook: {url, byEvents, base64, events}' },
  {
    name: /^businessId$/i,
    remedy: 'use connection.businessAccountId of the transport whatsapp-cloud, or leave it out',
  },
];

const ofWebhookHeaders: readonly Switch[] = [
  { name: /^jwt_key$/i, remedy: 'no token is made of it; the signature of an event proves its sender' },
];

type Fault = (body: unknown) => string[];

const webhook: Fault = (body) =>
  faults(at(at(body, 'webhook'), 'headers'), ofWebhookHeaders, 'webhook.headers.');

/** What a request may ask for in vain: a sentence for each switch that is on in its body. */
export const foreignSwitches = {
  instance: (body: unknown) => [...faults(body, ofInstances), ...webhook(body)],
  settings: (body: unknown) => faults(body, ofSettings),
  webhook,
} as const satisfies Record<string, Fault>;

function faults(body: unknown, switches: readonly Switch[], path = ''): string[] {
  if (typeof body !== 'object' || body === null) return [];
  return Object.entries(body).flatMap(([name, value]) => {
    const found = isOn(value) ? switches.find((one) => one.name.test(name)) : undefined;
    return found === undefined ? [] : [`${path}${name}: is not supported: ${found.remedy}`];
  });
}

function at(body: unknown, name: string): unknown {
  return typeof body === 'object' && body !== null ? Reflect.get(body, name) : undefined;
}

const OFF: ReadonlySet<unknown> = new Set([undefined, null, false, 0, '', 'false', '0']);

function isOn(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return !OFF.has(value);
  return 'enabled' in value ? isOn(value.enabled) : Object.values(value).some(isOn);
}
