/** The interface of messaging-gateway.md: our own gateway, and other servers that have it. */
import { parseJson } from 'soundpost-base/json';
import { gatewayErrorCatalogue } from 'soundpost-contract/gateway-errors';
import { StatusReport } from 'soundpost-contract/gateway-events';
import { MessageKey, MessageStatus } from 'soundpost-contract/job';
import { z } from 'zod';
import { type Answered, type Failure, failureOf, type GatewayAdapter, type Sending } from './adapter.ts';
import { wordsOf } from './words.ts';

/** Other servers omit fields or write them differently; these are the ones needed. */
const Sent = z
  .object({ key: MessageKey, status: MessageStatus.catch('PENDING') })
  .transform(({ key, status }) => ({ key, messageStatus: status }));
const Coded = z.object({ code: z.string(), retryable: z.boolean().default(true).catch(true) });

const path = ({ brand, request: { instance } }: Sending): string =>
  `/message/send${brand}Audio/${encodeURIComponent(instance)}`;

const coded = ({ json }: Answered) => Coded.safeParse(json).data;

/** The same key is at work: an earlier request with it may still send the message. */
function failureWith(answered: Answered): Failure {
  const code = coded(answered)?.code;
  const failure = failureOf(answered, wordsOf(answered.json), code);
  return code === 'idempotency_in_progress' ? { ...failure, kind: 'not-now' } : failure;
}

/** Our error code decides; without one the answer is of a proxy in between. */
export const soundpost: GatewayAdapter = {
  isForm: true,
  call(sending) {
    const { instance: _, ...fields } = sending.request;
    return { path: path(sending), headers: { apikey: sending.apiKey }, body: fields };
  },
  sent: (json) => Sent.safeParse(json).data,
  failure(answered) {
    const failure = failureWith(answered);
    const { code, retryable } = coded(answered) ?? {};
    const isOurs = code !== undefined && Object.hasOwn(gatewayErrorCatalogue, code);
    if (isOurs && answered.status === 502) return { ...failure, kind: 'refused' };
    return { ...failure, isFinal: isOurs && retryable === false };
  },
  updates: (body) => (StatusReport.safeParse(parseJson(body)).data?.data ?? []).filter((one) => one !== null),
};

export const other: GatewayAdapter = {
  call(sending) {
    const { apiKey, audio } = sending;
    const { instance: _, mentioned, ...fields } = sending.request;
    const body = {
      ...fields,
      // The public server rejects an empty list, and re-encodes unless told not to.
      ...(mentioned?.length ? { mentioned } : {}),
      ...(audio.isNote ? { encoding: false } : {}),
      audio: audio.base64 ?? audio.url,
    };
    return { path: path(sending), headers: { apikey: apiKey }, body };
  },
  sent: soundpost.sent,
  failure: failureWith,
  updates: soundpost.updates,
};
