/** What the network's refusals mean to a caller. */
import { GatewayError, type GatewayErrorCode } from 'soundpost-contract/gateway-errors';

/** Conditions by which a server says that nobody is there (RFC 6120 §8.3.3). */
const nobodyThere = new Set(['item-not-found', 'service-unavailable', 'gone', 'recipient-unavailable']);
const unreachableServer = new Set(['remote-server-not-found', 'remote-server-timeout']);

/** The stanza's error condition, for instance `item-not-found`; undefined for an error of another kind. */
export function conditionOf(error: unknown): string | undefined {
  return error instanceof Error && error.name === 'StanzaError' && 'condition' in error
    ? String(error.condition)
    : undefined;
}

/** The server answered that there is no such thing, as opposed to not answering. */
export function isNothingThere(error: unknown): boolean {
  const condition = conditionOf(error);
  return condition !== undefined && (nobodyThere.has(condition) || condition === 'feature-not-implemented');
}

/**
 * @param what the sentence's beginning, naming the field or the thing
 * @param codes what certain conditions are to be answered with, instead of network_refused
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

/** A message came back. */
export class Bounced extends GatewayError {
  /** @param isContact somebody of the address book exists, whatever the server says */
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
