/** A file on the account's upload service (XEP-0363). */
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import { OutboundFailed, OutboundRefused } from 'soundpost-outbound/errors';
import type { Outbound } from 'soundpost-outbound/outbound';
import type { Discovery } from './discovery.ts';
import { attribute, type Element, xml } from './element.ts';
import { refusal } from './failure.ts';
import { ns } from './namespaces.ts';
import type { Stream } from './stream.ts';

interface UploadOptions {
  readonly stream: Stream;
  readonly discovery: Discovery;
  readonly outbound: Pick<Outbound, 'put'>;
}

interface UploadRequest {
  readonly file: string;
  readonly name: string;
  readonly mediaType: string;
  readonly signal: AbortSignal;
}

interface SharedFile {
  /** Public address of the file. */
  readonly url: string;
  readonly sizeBytes: number;
}

const PUT_IDLE_MS = 120_000;
/** The only headers that a slot may set (XEP-0363 §5). */
const slotHeaders = new Set(['authorization', 'cookie', 'expires']);

export async function upload(
  { stream, discovery, outbound }: UploadOptions,
  request: UploadRequest,
): Promise<SharedFile> {
  const { file, name, mediaType, signal } = request;
  const service = await discovery.upload().catch((error: unknown) => {
    throw refusal('finding the upload service', error);
  });
  if (service === undefined) {
    throw new GatewayError('network_refused', 'the account’s server has no upload service (XEP-0363)');
  }
  const { size: sizeBytes } = await stat(file);
  if (service.maxBytes !== undefined && sizeBytes > service.maxBytes) {
    throw new GatewayError(
      'payload_too_large',
      `audio: the network takes files of ${service.maxBytes} bytes at most, this voice note has ${sizeBytes}`,
    );
  }
  const slot = await askForSlot(stream, service.jid, { name, sizeBytes, mediaType });
  using body = disposable(createReadStream(file));
  const { status } = await outbound
    .put({
      purpose: 'service',
      url: slot.putUrl,
      headers: { ...slot.headers, 'Content-Type': mediaType },
      body: body.stream,
      sizeBytes,
      idleMs: PUT_IDLE_MS,
      signal,
    })
    .catch((error: unknown) => {
      throw uploadFailure(error);
    });
  if (status !== 201 && status !== 200) {
    throw new GatewayError('network_refused', `the upload service answered with status ${status}`);
  }
  return { url: slot.getUrl, sizeBytes };
}

interface Slot {
  readonly putUrl: string;
  readonly getUrl: string;
  readonly headers: Readonly<Record<string, string>>;
}

async function askForSlot(
  stream: Stream,
  to: string,
  { name, sizeBytes, mediaType }: { name: string; sizeBytes: number; mediaType: string },
): Promise<Slot> {
  const request = xml('request', {
    xmlns: ns.upload,
    filename: name,
    size: String(sizeBytes),
    'content-type': mediaType,
  });
  const answer = await stream.query('get', request, { to }).catch((error: unknown) => {
    throw refusal('asking for an upload slot', error);
  });
  const slot = answer.getChild('slot', ns.upload);
  const put = slot?.getChild('put', ns.upload);
  const putUrl = attribute(put, 'url');
  const getUrl = attribute(slot?.getChild('get', ns.upload), 'url');
  if (putUrl === undefined || getUrl === undefined) {
    throw new GatewayError('network_refused', 'the upload service returned no upload slot');
  }
  return { putUrl, getUrl, headers: headersOf(put) };
}

function headersOf(put: Element | undefined): Record<string, string> {
  const headers = (put?.getChildren('header') ?? []).map(
    (header) => [String(header.attrs.name), header.getText().replace(/[\r\n]/g, '')] as const,
  );
  return Object.fromEntries(headers.filter(([name]) => slotHeaders.has(name.toLowerCase())));
}

function uploadFailure(error: unknown): unknown {
  if (error instanceof OutboundRefused) {
    return new GatewayError(
      'network_refused',
      'the upload service lies at an address that the operator has not allowed (OUTBOUND_ALLOW)',
      { cause: error },
    );
  }
  return error instanceof OutboundFailed
    ? new GatewayError('network_refused', `the upload failed: ${error.message}`, { cause: error })
    : error;
}

function disposable(stream: ReturnType<typeof createReadStream>): Disposable & { stream: typeof stream } {
  return { stream, [Symbol.dispose]: () => stream.destroy() };
}
