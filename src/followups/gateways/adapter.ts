/** A messaging server's interface, as pure mappings: request, answer, events (decisions C). */
import type { MessageKey, MessageStatus } from 'soundpost-contract/job';
import type { VoiceMessageRequest } from 'soundpost-contract/job-request';

type VoiceRequest = Omit<VoiceMessageRequest, 'split' | 'trimSilence'>;

export interface Sending {
  readonly request: VoiceRequest;
  readonly audio: {
    /** Undefined above 12 MiB, and where the file itself is sent along. */
    readonly base64?: string | undefined;
    /** Where the server could fetch it. */
    readonly url: string;
    /** Whether it is a voice note; otherwise it is the job's output, in any format. */
    readonly isNote: boolean;
    readonly mediaType: string;
    readonly seconds?: number | undefined;
  };
  readonly brand: string;
  readonly apiKey: string;
}

interface GatewayCall {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The JSON body; of our own gateway the fields of the form. */
  readonly body: Readonly<Record<string, unknown>>;
}

/** An answer that is no success. */
export interface Failure {
  /**
   * - `not-now`: the server did not accept the message, but may later.
   * - `refused`: it rejects this message for good.
   * - `lost`: unknown whether the message was sent.
   */
  readonly kind: 'not-now' | 'refused' | 'lost';
  readonly code: string;
  readonly message: string;
  /** Of `lost`: a repetition would send nothing, and get the same answer. */
  readonly isFinal?: boolean;
}

export interface Answered {
  readonly status: number;
  /** Undefined if the body is not JSON. */
  readonly json: unknown;
  /** The beginning of the body. */
  readonly text: string;
}

export interface StatusUpdate {
  readonly id: string;
  readonly status: MessageStatus;
  /** Of an ERROR, if the server says why. */
  readonly error?: { readonly code: string; readonly message: string } | undefined;
}

export interface GatewayAdapter {
  /** Whether the file is sent along as a form. */
  readonly isForm?: boolean;
  call(sending: Sending): GatewayCall;
  /** From the body of a success; undefined if it cannot be read. */
  sent(
    json: unknown,
    request: VoiceRequest,
  ): { readonly key: MessageKey; readonly messageStatus: MessageStatus } | undefined;
  failure(answered: Answered): Failure;
  /** From the body of an event; empty for any other event. @throws SyntaxError if unreadable */
  updates(body: string): readonly StatusUpdate[];
  /** What the server cannot do: a request that asks for it is refused. */
  readonly cannot?: readonly {
    readonly field: keyof VoiceRequest;
    readonly why: string;
    isAsked(request: VoiceRequest): boolean;
  }[];
}

const NOT_NOW = new Set([429, 503]);
const LOST = new Set([500, 502, 504]);

/** What the status of an answer means, unless its server tells more (decisions C). */
export function failureOf({ status }: Answered, words: string, code = `HTTP_${status}`): Failure {
  const kind = NOT_NOW.has(status) ? 'not-now' : LOST.has(status) ? 'lost' : 'refused';
  return { kind, code, message: words || `the gateway answered ${status}` };
}

/** Phones and web pages copy these along with a number. */
const INVISIBLE = /[\s\p{Bidi_Control}]/gu;
const PEOPLE = new Set(['s.whatsapp.net', 'c.us']);

/** A number or JID as WhatsApp's servers write it. @param domain of people, such as `c.us` */
export function whatsAppAddress(number: string, domain: string): string {
  const [user = '', host] = number.replace(INVISIBLE, '').split('@');
  if (host === undefined) return `${user.replace(/\D/g, '')}@${domain}`;
  return `${user}@${PEOPLE.has(host) ? domain : host}`;
}

/**
 * WhatsApp's server refused the message, or knows nobody of this number, as whatsmeow words it
 * (send.go; tulir/whatsmeow#1041, #1074). WAHA's engine GOWS and wuzapi are built on it.
 */
export const REFUSED_BY_WHATSAPP = /server returned error \d+|no LID found/;
