/**
 * Events as the public server (2.3.6) has them, under GATEWAY_ANSWERS=public: field names, nesting
 * and fixed words are read from its published source. Pure.
 */
import type { GatewayEventData, NamedGatewayEvent } from 'soundpost-contract/gateway-events';
import type { MessageKey } from 'soundpost-contract/job';

interface Receiver {
  readonly instanceId: string;
  /** The address of the webhook as it was set. */
  readonly destination: string;
  /** Absolute base URL of the gateway. */
  readonly serverUrl: string;
}

/** Its clients tell own messages by this word. */
const OWN_NAME = 'Você';

export function publicEvent(told: NamedGatewayEvent, receiver: Receiver): object {
  const { event, instance, date_time, sender } = told;
  return {
    event,
    instance,
    data: publicData(told, receiver.instanceId),
    destination: receiver.destination,
    date_time: localTime(date_time),
    sender,
    server_url: receiver.serverUrl,
    // Theirs is the token of the instance: a receiver of events needs none.
    apikey: null,
  };
}

/**
 * Whether it tells what receivers have been told: the text of a message changed, not its status.
 */
export function repeatsStatus({ event, data }: NamedGatewayEvent): boolean {
  return event === 'messages.update' && data.message !== undefined;
}

function publicData(told: NamedGatewayEvent, instanceId: string): object {
  switch (told.event) {
    case 'messages.upsert':
    case 'send.message':
      return publicMessage(told.data, instanceId);
    case 'messages.update': {
      const { key, status, ...more } = told.data;
      return {
        messageId: key.id,
        keyId: key.id,
        remoteJid: key.remoteJid,
        fromMe: key.fromMe,
        participant: key.participant ?? null,
        status,
        pollUpdates: null,
        instanceId,
        ...more,
      };
    }
    case 'connection.update': {
      // Our own: theirs has the number alone.
      const { reason: _, ...data } = told.data;
      return data;
    }
    default:
      return told.data;
  }
}

function publicMessage(
  { key, pushName, status, message, contextInfo, ...data }: GatewayEventData['messages.upsert'],
  instanceId: string,
): object {
  return {
    key,
    pushName: key.fromMe ? OWN_NAME : pushName || numberOf(key),
    status,
    message,
    ...(contextInfo && { contextInfo }),
    messageType: data.messageType,
    messageTimestamp: Number(data.messageTimestamp),
    instanceId,
    source: sourceOf(key.id),
  };
}

function numberOf({ participant, remoteJid }: MessageKey): string {
  return (participant ?? remoteJid).split('@')[0] ?? '';
}

/** By the form of its id, as WhatsApp's clients make them; the first that fits. */
const sources = [
  ['ios', /^3A.{18}$/],
  ['web', /^3E.{20}$/],
  ['android', /^(.{21}|.{32})$/],
  ['desktop', /^(3F|.{18}$)/],
] as const;

function sourceOf(id: string): string {
  return sources.find(([, form]) => form.test(id))?.[0] ?? 'unknown';
}

/** The time on the wall of this machine, with a `Z` all the same. @param utc ISO 8601 */
function localTime(utc: string): string {
  const at = new Date(utc);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString();
}
