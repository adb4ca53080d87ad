/**
 * The templates of packages/n8n-nodes-soundpost in a real n8n, headless, beside API, worker and
 * gateway. script/n8n-templates installs n8n and runs this. Telegram, the transcriber, SMTP and S3
 * are servers of the tests.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fetch } from 'soundpost-testing/http';
import { systemTools } from 'soundpost-testing/media-tools';
import { unless } from 'soundpost-testing/needs';
import { freePorts } from 'soundpost-testing/ports';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { S3Server } from 'soundpost-testing/s3/s3-server';
import { type RunningProcess, ServiceHome } from 'soundpost-testing/service';
import { until } from 'soundpost-testing/until';
import { serveVideos, type VideoServer } from 'soundpost-testing/video-server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { useVideos } from '../end-to-end/videos.ts';
import { startTranscriber, type TranscriberStub } from '../followups/transcripts/transcriber-stub.ts';
import { type FakeBotApi, startFakeBotApi } from '../gateway/telegram/fake-bot-api.ts';
import { ada, createBot } from '../gateway/telegram/telegram-fixture.ts';
import { type SmtpSink, startSmtpSink } from './smtp-sink.ts';

const CACHE = join(import.meta.dirname, '../../.cache/n8n');
const N8N = join(CACHE, 'app/node_modules/n8n/bin/n8n');
const NODE = join(import.meta.dirname, '../../packages/n8n-nodes-soundpost');
const missing = existsSync(N8N) ? undefined : 'they need n8n (script/n8n-templates)';
const TEMPLATES = ['telegram-voice-note', 'meeting-transcript', 'incoming-video-to-s3'];
const GATEWAY_KEY = 'a key of the gateway for these tests';
const WEBHOOK_KEY = { 'X-Webhook-Key': 'a key that n8n asks for' };

/** What it would ask the outside for, and would wait for at its end, is off. */
const QUIET = {
  EXTERNAL_FRONTEND_HOOKS_URLS: '',
  N8N_COMMUNITY_PACKAGES_PREVENT_LOADING: 'false',
  N8N_DIAGNOSTICS_ENABLED: 'false',
  N8N_DYNAMIC_BANNERS_ENABLED: 'false',
  N8N_LICENSE_AUTO_RENEW_ENABLED: 'false',
  N8N_PERSONALIZATION_ENABLED: 'false',
  N8N_TEMPLATES_ENABLED: 'false',
  N8N_VERIFIED_PACKAGES_ENABLED: 'false',
  N8N_VERSION_NOTIFICATIONS_ENABLED: 'false',
};

const videos = useVideos();

describe('the templates for n8n', { timeout: 600_000, ...unless(missing) }, () => {
  let redis: TestRedis;
  let s3: S3Server;
  let telegram: FakeBotApi;
  let transcriber: TranscriberStub;
  let smtp: SmtpSink;
  let web: VideoServer;
  let home: ServiceHome;
  let gateway: string;
  let n8n: RunningProcess;
  let n8nUrl: string;

  const callGateway = async (method: string, path: string, body?: unknown) => {
    const headers = { apikey: GATEWAY_KEY, 'Content-Type': 'application/json' };
    const answer = await fetch(`${gateway}${path}`, {
      method,
      headers,
      body: body ? JSON.stringify(body) : null,
    });
    return { status: answer.status, body: await answer.json() };
  };
  const post = (path: string, init: Parameters<typeof fetch>[1]) =>
    fetch(`${n8nUrl}/webhook/${path}`, { method: 'POST', ...init });

  beforeAll(async () => {
    const [n8nPort = 0, brokerPort = 0, brokerHealthPort = 0] = await freePorts(3);
    n8nUrl = `http://127.0.0.1:${n8nPort}`;
    [redis, s3, telegram, transcriber, smtp, web] = await Promise.all([
      startTestRedis(),
      S3Server.start(),
      startFakeBotApi(),
      startTranscriber(),
      startSmtpSink(),
      serveVideos(videos.folder),
    ]);
    home = await ServiceHome.make({
      REDIS_URL: redis.url,
      SECRET_KEY: 'a secret that three processes share, of 32 bytes or more',
      GATEWAY_API_KEY: GATEWAY_KEY,
      TELEGRAM_URL: telegram.url,
      TRANSCRIBER_URL: transcriber.url,
      OUTBOUND_ALLOW: [telegram.allow, web.allow, `127.0.0.1:${n8nPort}`].join(),
    });
    const api = await home.start('api').says(/^API\s+(http\S+)/m);
    const addresses = { PUBLIC_URL: api, GATEWAY_EVENTS_URL: `${api}/hooks/gateway` };
    gateway = await home.start('gateway', addresses).says(/^Gateway\s+(http\S+)/m);
    await home.start('worker', { ...addresses, GATEWAY_URL: gateway }).says(/^Worker/m);
    telegram.person(ada.id, ada.first_name);
    await createBot({ api: telegram, gateway: { call: callGateway } as never });

    const command = setUpN8n(home, {
      ...QUIET,
      N8N_USER_FOLDER: home.folder,
      N8N_PORT: String(n8nPort),
      N8N_LISTEN_ADDRESS: '127.0.0.1',
      N8N_RUNNERS_BROKER_PORT: String(brokerPort),
      N8N_RUNNERS_LAUNCHER_HEALTH_CHECK_PORT: String(brokerHealthPort),
      N8N_ENCRYPTION_KEY: 'a key of these tests alone',
      N8N_DEFAULT_BINARY_DATA_MODE: 'filesystem',
      N8N_PAYLOAD_SIZE_MAX: '32',
      CONNECTS_FILE: join(home.folder, 'connects'),
      NODE_OPTIONS: `--import=${import.meta.resolve('soundpost-testing/connect-recorder')}`,
    });
    await installNode(home);
    await writeCredentials(home, { api, smtpPort: smtp.port, s3 });
    await writeTemplates(home, s3.bucket);
    await command('import:credentials', `--input=${join(home.folder, 'credentials.json')}`).ends();
    await command('import:workflow', `--input=${join(home.folder, 'templates.json')}`).ends();
    for (const name of TEMPLATES) await command('publish:workflow', `--id=${name}`).ends();
    n8n = command('start').process;
    const readiness = () => fetch(`${n8nUrl}/healthz/readiness`).catch(() => undefined);
    await until('n8n answers', async () => (await readiness())?.ok, 300_000);
    await until('its webhooks are open', async () => {
      const { status } = await post('telegram-voice-note', {});
      return status !== 404;
    });
  }, 900_000);

  afterAll(async () => {
    n8n?.signal('SIGTERM');
    await n8n?.exited;
    await home?.remove();
    await Promise.all([redis, s3, telegram, transcriber, smtp, web].map((server) => server?.close()));
  });

  it('make a voice note on Telegram of a file', async () => {
    const form = new FormData();
    form.set('chat', String(ada.id));
    form.set('file', new File([await readFile(videos.talk)], 'talk.mp4', { type: 'video/mp4' }));
    expect((await post('telegram-voice-note', { body: form })).status).toBe(403);
    expect((await post('telegram-voice-note', { body: form, headers: WEBHOOK_KEY })).status).toBe(200);
    const { request } = await until('the note is sent', () => telegram.messages[0], 120_000);
    if (!('voice' in request)) throw new Error('it is no voice note');
    expect(request.voice.type).toMatch(/^audio\/ogg/);
    expect(request.voice.bytes.subarray(0, 4).toString()).toBe('OggS');
    expect(telegram.faults).toEqual([]);
  });

  it('send the transcript of a recording by e-mail', async () => {
    const body = JSON.stringify({ url: web.url('talk.mp4'), title: 'Monday' });
    const headers = { ...WEBHOOK_KEY, 'Content-Type': 'application/json' };
    expect((await post('meeting-recording', { body, headers })).status).toBe(200);
    const mail = await until('the mail is there', () => smtp.mails[0], 120_000);
    expect(mail.to).toEqual(['<team@example.com>']);
    expect(mail.text).toContain('Subject: Transcript: Monday');
    expect(mail.text).toContain('Part 1.');
  });

  it('keep the audio of a video that comes in through the gateway in a bucket', async () => {
    const webhook = {
      url: `${n8nUrl}/webhook/incoming-videos`,
      headers: WEBHOOK_KEY,
      base64: true,
      events: ['messages.upsert'],
    };
    await callGateway('POST', '/webhook/set/bot', { webhook });
    telegram.files.set('video', { bytes: await readFile(videos.talk) });
    const chat = telegram.person(ada.id, ada.first_name);
    telegram.say(chat, ada, { text: 'a text, which is no video' });
    const id = telegram.say(chat, ada, { video: { file_id: 'video', mime_type: 'video/mp4' } });
    const key = `${ada.id}_${id}.mp3`;
    await until('the object is there', () => s3.contents().includes(key), 120_000);
    expect(s3.contents()).toEqual([key]);
    const file = join(home.folder, key);
    const stored = (await s3.store.getObject(s3.bucket, key))?.content;
    await writeFile(file, stored ?? '');
    const asked = ['-v', 'error', '-of', 'csv=p=0', '-show_entries', 'stream=codec_name', file];
    const { stdout } = spawnSync(systemTools.ffprobePath, asked);
    expect(String(stdout).trim()).toBe('mp3');
  });

  it('need nothing outside of this machine', async () => {
    const connects = (await readFile(join(home.folder, 'connects'), 'utf8')).trim().split('\n');
    expect(connects.length).toBeGreaterThan(0);
    expect(connects.filter((at) => !/^(127\.0\.0\.1|::1):\d+$|^\//.test(at))).toEqual([]);
  });
});

/** @returns what runs a command of n8n */
function setUpN8n(home: ServiceHome, environment: Readonly<Record<string, string>>) {
  return (...command: string[]) => {
    const started = home.run([process.execPath, N8N, ...command], environment);
    return {
      process: started,
      async ends() {
        const code = await started.exited;
        if (code !== 0) throw new Error(`n8n ${command.join(' ')} ended with ${code}:\n${started.output()}`);
      },
    };
  };
}

/** The package as npm would publish it, where n8n keeps community nodes. */
async function installNode(home: ServiceHome): Promise<void> {
  const target = join(home.folder, '.n8n/nodes/node_modules/n8n-nodes-soundpost');
  await mkdir(target, { recursive: true });
  await cp(join(CACHE, 'package/dist'), join(target, 'dist'), { recursive: true });
  await cp(join(NODE, 'package.json'), join(target, 'package.json'));
}

const types: Readonly<Record<string, string>> = {
  'n8n-nodes-base.webhook': 'httpHeaderAuth',
  'n8n-nodes-base.emailSend': 'smtp',
  'n8n-nodes-base.s3': 's3',
  'n8n-nodes-soundpost.soundpost': 'soundpostApi',
};

interface Servers {
  readonly api: string;
  readonly smtpPort: number;
  readonly s3: S3Server;
}

async function writeCredentials(home: ServiceHome, { api, smtpPort, s3 }: Servers): Promise<void> {
  const [[name, value] = []] = Object.entries(WEBHOOK_KEY);
  const mail = {
    user: '',
    password: '',
    host: '127.0.0.1',
    port: smtpPort,
    secure: false,
    disableStartTls: true,
  };
  const { accessKeyId, secretAccessKey, region } = s3.account;
  const bucket = { endpoint: s3.endpoint, region, accessKeyId, secretAccessKey, forcePathStyle: true };
  const data = {
    httpHeaderAuth: { name, value },
    smtp: mail,
    s3: bucket,
    soundpostApi: { url: api, apiKey: home.key },
  };
  const all = Object.entries(data).map(([type, data]) => ({ id: type, name: type, type, data }));
  await writeFile(join(home.folder, 'credentials.json'), JSON.stringify(all));
}

/** The templates with what their notes tell the user to choose. */
async function writeTemplates(home: ServiceHome, bucketName: string): Promise<void> {
  const all = TEMPLATES.map(async (id) => {
    const template = JSON.parse(await readFile(join(NODE, 'templates', `${id}.json`), 'utf8'));
    for (const node of template.nodes) {
      const type = types[node.type];
      if (type !== undefined) node.credentials = { [type]: { id: type, name: type } };
      if (type === 's3') node.parameters.bucketName = bucketName;
    }
    return { ...template, id };
  });
  await writeFile(join(home.folder, 'templates.json'), JSON.stringify(await Promise.all(all)));
}
