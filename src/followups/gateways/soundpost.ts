/** The interface of messaging-gateway.md: our own gateway, and other servers that have it. */
import { parseJson } from 'soundpost-base/json';
import { gatewayErrorCatalogue } from 'soundpost-contract/gateway-errors';
import { StatusReport } from 'soundpost-contract/gateway-events';
import { MessageKey, MessageStatus } from 'soundpost-contract/job';
import { z } from 'zod';
import { failureOf, type GatewayAdapter, type Sending } from './adapter.ts';
import { wordsOf } from './words.ts';

/** Other servers omit fields or write them differently; these are the ones needed. */
const Sent = z
  .object({ key: MessageKey, status: MessageStatus.catch('PENDING') })
  .transform(({ key, status }) => ({ key, messageStatus: status }));
const Coded = z.object({ code: z.string() });

const path = ({ brand, request: { instance } }: Sending): string =>
  `/message/send${brand}Audio/${encodeURIComponent(instance)}`;

/** Our error code decides; without one the answer is of a proxy in between. */
export const soundpost: GatewayAdapter = {
  isForm: true,
  call(sending) {
    const { instance: _, ...fields } = sending.request;
    return { path: path(sending), headers: { apikey: sending.apiKey }, body: fields };
  },
  sent: (json) => Sent.safeParse(json).data,
  failure(answered) {
    const code = Coded.safeParse(answered.json).data?.code;
    const failure = failureOf(answered, wordsOf(answered.json), code);
    if (code === 'idempotency_in_progress') return { ...failure, kind: 'not-now' };
    const isOurs = code !== undefined && Object.hasOwn(gatewayErrorCatalogue, code);
    return isOurs && answered.status === 502 ? { ...failure, kind: 'refused' } : failure;
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
  failure: (answered) =>
    failureOf(answered, wordsOf(answered.json), Coded.safeParse(answered.json).data?.code),
  updates: soundpost.updates,
};
