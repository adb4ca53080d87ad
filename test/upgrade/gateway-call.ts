/** Requests to a gateway, with the key of an instance or of the whole. */
import type { Json } from '../client.ts';

export interface GatewayAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** Undefined where there is none. */
  readonly body: Json;
}

export type GatewayCall = (
  method: string,
  path: string,
  body?: object,
  headers?: Readonly<Record<string, string>>,
) => Promise<GatewayAnswer>;

export function gatewayCall(base: string, apikey: string): GatewayCall {
  return async (method, path, body, headers = {}) => {
    const response = await fetch(`${base}${path}`, {
      method,
      headers: { apikey, ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...headers },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      body: text === '' ? undefined : JSON.parse(text),
    };
  };
}
