/**
 * What is outside of the service: the server of the videos, the receiver of all webhooks, a chat network. Their addresses stand in the data of
 * the first edition, some of them encrypted, so they are the same whenever that data is loaded: ports of a loopback address that nothing else
 * uses.
 */
import { join } from 'node:path';
import { HookReceiver } from '../faults/hook-receiver.ts';
import { type CuttableLine, startCuttableLine } from '../gateway/xmpp/cuttable-line.ts';
import { DOMAIN, ROOMS, startTestProsody, type TestProsody } from '../prosody.ts';
import { serveVideos, type VideoServer } from '../video-server.ts';
import { startPeer, type XmppPeer } from '../xmpp-peer.ts';

const HOST = '127.77.16.1';
const HOOK_PORT = 27_316;
const VIDEO_PORT = 27_317;
/** In front of a server that cannot choose its address. */
const XMPP_PORT = 27_318;
const XMPP_SERVICE = `xmpp://${HOST}:${XMPP_PORT}`;

/** What the first edition left behind, beside `state.json.gz`. */
export const FIXTURE = join(import.meta.dirname, 'first-edition');

export interface Outside {
  readonly hooks: HookReceiver;
  readonly videos: VideoServer;
  /** Rules that let the service reach it. */
  readonly outboundAllow: string;
  close(): Promise<void>;
}

/** The people of the loopback network; a test reaches it by the inbox. */
const person = (number: string) => ({ number, jid: `${number}@people.loopback` });
export const ada = person('12025550101');
export const hedy = person('12025550102');
export const nikola = person('12025550103');

/** Accounts of the XMPP server, by local part. */
export const COURIER = '12025550111';
const ADA = '12025550112';
const accounts = { [COURIER]: 'password of the courier', [ADA]: 'password of ada' };
export const jidOf = (local: string): string => `${local}@${DOMAIN}`;
export const adasJid = jidOf(ADA);
export const ROOM = `120363000000000001@${ROOMS}`;
export const connection = { jid: jidOf(COURIER), password: accounts[COURIER], service: XMPP_SERVICE };

export interface XmppServer {
  readonly prosody: TestProsody;
  readonly line: CuttableLine;
  readonly outboundAllow: string;
  ada(acknowledges: boolean): Promise<XmppPeer>;
  close(): Promise<void>;
}

/** @param furnish puts into the folder of its data what an earlier server has left there */
export async function openXmppServer(furnish?: (dataFolder: string) => Promise<void>): Promise<XmppServer> {
  const prosody = await startTestProsody({ accounts, ...(furnish ? { furnish } : {}) });
  const line = await startCuttableLine(prosody.port, HOST, XMPP_PORT);
  const peers: XmppPeer[] = [];
  return {
    prosody,
    line,
    outboundAllow: `${prosody.outboundAllow},${HOST}:${XMPP_PORT}`,
    async ada(acknowledges) {
      const peer = await startPeer({
        port: prosody.port,
        jid: adasJid,
        password: accounts[ADA],
        acknowledges,
      });
      peers.push(peer);
      return peer;
    },
    async close() {
      await Promise.all(peers.map((peer) => peer.close()));
      await line.close();
      await prosody.close();
    },
  };
}

export async function openOutside(): Promise<Outside> {
  const hooks = await HookReceiver.start(HOST, HOOK_PORT);
  const videos = await serveVideos(FIXTURE, HOST, VIDEO_PORT);
  return {
    hooks,
    videos,
    outboundAllow: `${hooks.allow},${videos.allow}`,
    async close() {
      await videos.close();
      await hooks.close();
    },
  };
}
