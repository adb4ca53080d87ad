/** Keys of every kind that Baileys stores with a session; their contents are nobody's. */
import { proto, type SignalDataSet } from 'baileys';

const bytes = (length: number): Buffer => Buffer.from(Array.from({ length }, (_, index) => index % 256));

export const signalKeys: SignalDataSet = {
  'pre-key': { '30': { public: bytes(32), private: bytes(33) } },
  session: { '4915100000001.0': bytes(80) },
  'sender-key': { 'group::someone': bytes(40) },
  'sender-key-memory': { 'group@g.us': { 'a@s.whatsapp.net': true } },
  'app-state-sync-key': {
    AAAA: proto.Message.AppStateSyncKeyData.fromObject({ keyData: bytes(32), timestamp: 1_600_000_000_000 }),
  },
  'app-state-sync-version': { regular: { version: 4, hash: bytes(48), indexValueMap: {} } },
  'lid-mapping': { '4915100000001': '112233' },
  'device-list': { '4915100000001': ['0', '7'] },
  tctoken: { 'a@s.whatsapp.net': { token: bytes(12), timestamp: '1600000000' } },
  'identity-key': { '4915100000001.0': bytes(34) },
};
