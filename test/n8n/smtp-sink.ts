/** A mail server that takes every message and keeps it (RFC 5321, without extensions). */
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { createInterface } from 'node:readline';

export interface SmtpSink {
  readonly port: number;
  /** Headers and text, as they came. */
  readonly mails: readonly { readonly to: readonly string[]; readonly text: string }[];
  close(): Promise<void>;
}

export async function startSmtpSink(): Promise<SmtpSink> {
  const mails: { to: string[]; text: string }[] = [];
  const server = createServer(async (socket) => {
    const answer = (line: string) => socket.write(`${line}\r\n`);
    socket.on('error', () => undefined);
    answer('220 sink.example');
    const lines = createInterface({ input: socket, crlfDelay: Number.POSITIVE_INFINITY });
    const next = lines[Symbol.asyncIterator]();
    let to: string[] = [];
    for await (const line of next) {
      const [verb = ''] = line.toUpperCase().split(/[ :]/);
      if (verb === 'RCPT') to.push(line.slice('RCPT TO:'.length).trim());
      if (verb === 'DATA') {
        answer('354 go on');
        mails.push({ to, text: await untilDot(next) });
        to = [];
      }
      answer(answers[verb] ?? '502 not known here');
      if (verb === 'QUIT') socket.end();
    }
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    mails,
    async close() {
      server.close();
      await once(server, 'close');
    },
  };
}

const answers: Readonly<Record<string, string>> = {
  ...{ HELO: '250 sink.example', EHLO: '250 sink.example', MAIL: '250 ok', RCPT: '250 ok' },
  ...{ DATA: '250 taken', RSET: '250 ok', NOOP: '250 ok', QUIT: '221 bye' },
};

/** RFC 5321, 4.5.2: a line of a dot alone ends it, and other lines that begin with one have two. */
async function untilDot(lines: AsyncIterator<string>): Promise<string> {
  const text: string[] = [];
  for (let line = await lines.next(); !line.done && line.value !== '.'; line = await lines.next()) {
    text.push(line.value.replace(/^\./, ''));
  }
  return text.join('\r\n');
}
