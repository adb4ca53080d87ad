import type {
  IExecuteFunctions,
  INodeExecutionData,
  INodeType,
  INodeTypeDescription,
  JsonObject,
} from 'n8n-workflow';
import { NodeApiError, NodeConnectionTypes, NodeOperationError } from 'n8n-workflow';
import { operations } from './operations';
import { properties } from './properties';

export class Soundpost implements INodeType {
  description: INodeTypeDescription = {
    displayName: 'Soundpost',
    name: 'soundpost',
    icon: { light: 'file:../../icons/soundpost.svg', dark: 'file:../../icons/soundpost.dark.svg' },
    group: ['transform'],
    version: 1,
    subtitle: '={{$parameter["operation"] + ": " + $parameter["resource"]}}',
    description: 'Extract the audio from videos, transcribe it, and send it as a voice message',
    defaults: { name: 'Soundpost' },
    inputs: [NodeConnectionTypes.Main],
    outputs: [NodeConnectionTypes.Main],
    usableAsTool: true,
    credentials: [{ name: 'soundpostApi', required: true }],
    properties,
  };

  async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
    const made: INodeExecutionData[] = [];
    for (let item = 0; item < this.getInputData().length; item++) {
      const name = `${this.getNodeParameter('resource', item)}.${this.getNodeParameter('operation', item)}`;
      const operation = operations[name];
      if (operation === undefined) {
        throw new NodeOperationError(this.getNode(), `There is no operation ${name}`, { itemIndex: item });
      }
      try {
        const answers = await operation(this, item);
        made.push(...answers.map((answer) => ({ ...answer, pairedItem: { item } })));
      } catch (error) {
        // One that is a NodeApiError already stays what it is.
        if (!this.continueOnFail()) {
          throw new NodeApiError(this.getNode(), error as JsonObject, { itemIndex: item });
        }
        made.push({ json: { error: (error as Error).message }, pairedItem: { item } });
      }
    }
    return [made];
  }
}
