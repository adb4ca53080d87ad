/**
 * The sign-in of the public server's dashboard, under GATEWAY_ANSWERS=public (decisions B): it asks
 * `GET /` whether a server is there, and `POST /verify-creds` whether the key is right.
 */
import type { RequestHandler } from 'express';
import { z } from 'zod';
import { route } from '../route.ts';

/** The version of the public server whose answers and events these are; clients read it. */
const VERSION = '2.3.6';

/** Needs no key. @param publicUrl absolute base URL without trailing slash */
export function welcome(publicUrl: string): RequestHandler {
  const body = {
    status: 200,
    message: 'Soundpost messaging gateway',
    version: VERSION,
    documentation: `${publicUrl}/docs`,
  };
  return (_request, response) => {
    response.json(body);
  };
}

const CredentialsAnswer = z.object({ status: z.literal(200), message: z.string() });

export const publicSignIn = route({
  method: 'post',
  path: '/verify-creds',
  access: 'instance',
  docs: {
    operationId: 'verifyCredentials',
    summary: 'Ask whether a key is valid',
    tag: 'Instances',
    answer: { status: 200, description: 'It is', body: CredentialsAnswer },
    errors: [],
  },
  run: async () => ({ status: 200 as const, message: 'The key is valid' }),
});
