/**
 * What Meta's error codes mean for a caller, whether they come with an answer or, after a 200, with
 * a `failed` status (developers.facebook.com/docs/whatsapp/cloud-api/support/error-codes).
 */
import { GatewayError, type GatewayErrorCode } from 'soundpost-contract/gateway-errors';

export const TOKEN_EXPIRED = 190;
const RATE_LIMITED = ['rate_limited', 'WhatsApp asks to send more slowly'] as const;
const NOT_ALLOWED = [
  'network_refused',
  'the access token lacks the permission whatsapp_business_messaging for this number',
] as const;

type Meaning = readonly [code: GatewayErrorCode, sentence: string];

const meanings: Readonly<Record<number, Meaning>> = {
  0: ['network_refused', 'the access token is not valid; delete the instance and create it with a new one'],
  3: NOT_ALLOWED,
  4: RATE_LIMITED,
  10: NOT_ALLOWED,
  33: ['network_refused', 'the business number is gone; check phoneNumberId'],
  190: [
    'network_refused',
    'the access token has expired or was withdrawn; delete the instance and create it with a new one',
  ],
  200: NOT_ALLOWED,
  368: ['network_refused', 'Meta has restricted the account for breaking its policy; see WhatsApp Manager'],
  80007: RATE_LIMITED,
  130429: RATE_LIMITED,
  130472: [
    'network_refused',
    'WhatsApp kept the message back: the number is part of an experiment of Meta’s',
  ],
  130497: ['network_refused', 'the account may not write to people in this country'],
  131005: NOT_ALLOWED,
  131021: ['network_refused', 'the account cannot write to itself'],
  131026: [
    'network_refused',
    'WhatsApp could not deliver: the number is not on WhatsApp, the person has blocked the account, or their app is too old',
  ],
  131030: ['network_refused', 'a test number writes only to the numbers listed in the app’s dashboard'],
  131031: ['network_refused', 'Meta has locked the account; see WhatsApp Manager'],
  131037: ['network_refused', 'the business number needs an approved display name; see WhatsApp Manager'],
  131042: ['network_refused', 'the account has no valid payment method; see WhatsApp Manager'],
  131045: ['network_refused', 'the business number is not registered; register it in WhatsApp Manager'],
  131047: [
    'network_refused',
    'the person last wrote more than 24 hours ago, so WhatsApp takes only templates; send one and wait for an answer',
  ],
  131048: ['network_refused', 'too many people blocked or reported the account, so WhatsApp limits it'],
  131049: ['network_refused', 'Meta chose not to deliver the message; wait before you send to this person'],
  131050: ['network_refused', 'the person has stopped messages of this kind'],
  131053: ['network_refused', 'WhatsApp cannot use the audio'],
  131056: ['rate_limited', 'too many messages to this person in a short time'],
  131057: ['not_connected', 'the account is in maintenance; try again later'],
  133010: ['network_refused', 'the business number is not registered; register it in WhatsApp Manager'],
  139101: ['network_refused', 'the block list is full: 64,000 people'],
};

/** Seconds until another try; Meta names none for these codes. */
const RETRY_AFTER_SECONDS = 30;
const LONGEST_WORDS = 300;

export interface GraphFault {
  readonly code: number;
  /** Meta's words, for codes without a sentence of ours. */
  readonly words: string;
}

/** Whether the code says for certain that nothing was done. */
export function isKnown(code: number): boolean {
  return meanings[code] !== undefined;
}

/** A sentence with the code, which holds no secret. */
export function sentenceOf({ code, words }: GraphFault): string {
  const sentence = meanings[code]?.[1] ?? `WhatsApp refused: ${words.slice(0, LONGEST_WORDS)}`;
  return `${sentence} (${code})`;
}

/** @param retryAfterSeconds as the answer said */
export function refusal(fault: GraphFault, retryAfterSeconds = RETRY_AFTER_SECONDS): GatewayError {
  const code = meanings[fault.code]?.[0] ?? 'network_refused';
  return new GatewayError(code, sentenceOf(fault), code === 'rate_limited' ? { retryAfterSeconds } : {});
}
