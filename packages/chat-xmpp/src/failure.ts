/** What the network's refusals mean to a caller. */
import { GatewayError, type GatewayErrorCode } from 'soundpost-contract/gateway-errors';

/** Conditions that mean that the recipient does not exist (RFC 6120 §8.3.3). */
const nobodyThere = new Set(['item-not-found', 'service-unavailable', 'gone', 'recipient-unavailable']);
const unreachableServer = new Set(['remote-server-not-found', 'remote-server-timeout']);

/** The stanza error's condition, such as `item-not-found`; undefined for other errors. */
export function conditionOf(error: unknown): string | undefined {
  return error instanceof Error && error.name === 'StanzaError' && 'condition' in error
    ? String(error.condition)
    : undefined;
}

/** Whether the server answered that the item does not exist, rather than not answering. */
export function isNothingThere(error: unknown): boolean {
  const condition = conditionOf(error);
  return condition !== undefined && (nobodyThere.has(condition) || condition === 'feature-not-implemented');
}

/**
 * @param what begins the sentence: names the field or the operation
 * @param codes error codes by condition; default: network_refused
 */
export function refusal(
  what: string,
  error: unknown,
  codes: Readonly<Record<string, GatewayErrorCode>> = {},
): GatewayError {
  if (error instanceof GatewayError) {
    return error;
  }
  const condition = conditionOf(error);
  if (condition === undefined) {
    return new GatewayError('network_refused', `${what}: the network did not answer`, { cause: error });
  }
  return new GatewayError(
    codes[condition] ?? 'network_refused',
    `${what}: the network refused (${condition})`,
    { cause: error },
  );
}

/** A message was returned as undeliverable. */
export class Bounced extends GatewayError {
  /** @param isContact a contact exists, whatever the server says */
  constructor(condition: string, isContact: boolean) {
    const nobody = unreachableServer.has(condition) || (nobodyThere.has(condition) && !isContact);
    super(
      nobody ? 'unknown_recipient' : 'network_refused',
      nobody
        ? 'number: nobody on the network takes messages at this address'
        : `number: the message came back (${condition})`,
    );
  }
}
