/**
 * A request with any headers, also a Host of another name, which fetch does not send; on a
 * connection of its own, which no server has left idle for long.
 */
import { request } from 'node:http';
import { text } from 'node:stream/consumers';

export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

export function rawRequest(
  port: number,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, method, path, headers, agent: false }, (response) => {
      text(response).then(
        (body) => resolve({ status: response.statusCode ?? 0, headers: response.headers, text: body }),
        reject,
      );
    });
    sent.on('error', reject).end();
  });
}
