/**
 * A Secret or a Namespace out of Kubernetes' protocol buffers (k8s.io/api/core/v1/generated.proto), in which Helm's client sends the records of its releases
 * and the namespace that it makes.
 */
import type { Json } from 'soundpost-testing/client';

const MAGIC = Buffer.from('k8s\0');
const NONE = Buffer.of();

export const isProtobuf = (body: Buffer): boolean => body.subarray(0, MAGIC.length).equals(MAGIC);

/** As JSON would have it. */
export function objectOfProtobuf(body: Buffer): Json {
  const envelope = body.subarray(MAGIC.length);
  const [typeMeta = NONE] = fields(envelope, 1);
  const [raw = NONE] = fields(envelope, 2);
  const [metadata = NONE] = fields(raw, 1);
  const kind = String(fields(typeMeta, 2)[0]);
  const object = {
    apiVersion: 'v1',
    kind,
    metadata: { name: String(fields(metadata, 1)[0]), labels: mapOf(fields(metadata, 11), 'utf8') },
  };
  return kind === 'Secret'
    ? { ...object, data: mapOf(fields(raw, 2), 'base64'), type: String(fields(raw, 3)[0]) }
    : object;
}

function mapOf(entries: readonly Buffer[], encoding: BufferEncoding): Record<string, string> {
  return Object.fromEntries(
    entries.map((entry) => [String(fields(entry, 1)[0]), fields(entry, 2)[0]?.toString(encoding) ?? '']),
  );
}

/** What the message has under this number; of whatever has a length, since numbers are not asked for. */
function fields(message: Buffer, wanted: number): Buffer[] {
  const found: Buffer[] = [];
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = message[at++] ?? 0;
      value += (byte % 128) * factor;
      if (byte < 128) return value;
    }
  };
  while (at < message.length) {
    const tag = varint();
    if (tag % 8 === 0) varint();
    else if (tag % 8 !== 2) throw new Error(`wire type ${tag % 8}`);
    else {
      const length = varint();
      if (Math.floor(tag / 8) === wanted) found.push(message.subarray(at, at + length));
      at += length;
    }
  }
  return found;
}
