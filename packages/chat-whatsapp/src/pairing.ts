/** What links a phone: the QR picture and, on request, a code to type instead. */
import { generate } from 'lean-qr';
import { toPngDataURL } from 'lean-qr/extras/node_export';
import type { Pairing } from 'soundpost-chat/transport';

/** Pixels per module, and the quiet zone in modules that ISO/IEC 18004 requires. */
const SCALE = 6;
const QUIET_ZONE = 4;

export function pairingOf(code: string, count: number): Pairing {
  return {
    pairingCode: null,
    code,
    base64: toPngDataURL(generate(code), { scale: SCALE, pad: QUIET_ZONE }),
    count,
  };
}
