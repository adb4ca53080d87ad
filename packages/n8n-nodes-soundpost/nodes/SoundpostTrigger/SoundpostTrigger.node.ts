import { createHmac, timingSafeEqual } from 'node:crypto';
import type {
  IDataObject,
  IHookFunctions,
  INodeType,
  INodeTypeDescription,
  IWebhookFunctions,
  IWebhookResponseData,
} from 'n8n-workflow';
import { NodeConnectionTypes } from 'n8n-workflow';
import { data } from '../Soundpost/service';

const EVENTS = [
  { name: 'Destination Updated', value: 'destination.updated' },
  { name: 'Job Completed', value: 'job.completed' },
  { name: 'Job Failed', value: 'job.failed' },
  { name: 'Transcript Updated', value: 'transcript.updated' },
  { name: 'Voice Message Updated', value: 'voice.updated' },
];
/** Standard Webhooks 1.0.0. */
const TOLERANCE_SECONDS = 300;

export class SoundpostTrigger implements INodeType {
  description: INodeTypeDescription = {
    displayName: 'Soundpost Trigger',
    name: 'soundpostTrigger',
    icon: { light: 'file:../../icons/soundpost.svg', dark: 'file:../../icons/soundpost.dark.svg' },
    group: ['trigger'],
    version: 1,
    subtitle: '={{$parameter["events"].join(", ")}}',
    description: 'Starts the workflow when a job, its transcript or its voice message ends',
    defaults: { name: 'Soundpost Trigger' },
    inputs: [],
    outputs: [NodeConnectionTypes.Main],
    credentials: [{ name: 'soundpostApi', required: true }],
    webhooks: [{ name: 'default', httpMethod: 'POST', responseMode: 'onReceived', path: 'soundpost' }],
    properties: [
      {
        displayName: 'Give the production URL above to jobs, as Webhook URL of the node Soundpost',
        name: 'notice',
        type: 'notice',
        default: '',
      },
      {
        displayName: 'Events',
        name: 'events',
        type: 'multiOptions',
        options: EVENTS,
        default: ['job.completed', 'job.failed'],
      },
    ],
  };

  // Webhooks belong to jobs, so that there is nothing to register: only whether the key may sign them.
  webhookMethods = {
    default: {
      async checkExists(this: IHookFunctions): Promise<boolean> {
        return false;
      },
      async create(this: IHookFunctions): Promise<boolean> {
        await data(this, { method: 'GET', url: '/v1/webhooks/secret' });
        return true;
      },
      async delete(this: IHookFunctions): Promise<boolean> {
        return true;
      },
    },
  };

  async webhook(this: IWebhookFunctions): Promise<IWebhookResponseData> {
    const { rawBody } = this.getRequestObject();
    const headers = this.getHeaderData() as IDataObject;
    // The secret costs a request, which a stranger cannot cause by posting anything.
    if (!mayBeSigned(rawBody, headers) || !isSigned(rawBody, headers, await secretOf(this))) {
      this.getResponseObject().status(401).json({ message: 'The signature is wrong or too old' });
      return { noWebhookResponse: true };
    }
    const event = this.getBodyData();
    const isWanted = (this.getNodeParameter('events') as string[]).includes(String(event.event));
    return isWanted ? { workflowData: [this.helpers.returnJsonArray([event as IDataObject])] } : {};
  }
}

async function secretOf(functions: IWebhookFunctions): Promise<string> {
  return (await data<{ secret: string }>(functions, { method: 'GET', url: '/v1/webhooks/secret' })).secret;
}

function mayBeSigned(body: Buffer | undefined, headers: IDataObject): boolean {
  const age = Date.now() / 1000 - Number(headers['webhook-timestamp']);
  const hasSignature = String(headers['webhook-signature']).startsWith('v1,');
  return Buffer.isBuffer(body) && hasSignature && Math.abs(age) <= TOLERANCE_SECONDS;
}

function isSigned(body: Buffer, headers: IDataObject, secret: string): boolean {
  const expected = createHmac('sha256', Buffer.from(secret.replace(/^whsec_/, ''), 'base64'))
    .update(`${headers['webhook-id']}.${headers['webhook-timestamp']}.`)
    .update(body)
    .digest();
  return String(headers['webhook-signature'])
    .split(' ')
    .filter((each) => each.startsWith('v1,'))
    .map((each) => Buffer.from(each.slice(3), 'base64'))
    .some((each) => each.length === expected.length && timingSafeEqual(each, expected));
}
