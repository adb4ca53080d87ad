import type {
  IAuthenticateGeneric,
  ICredentialTestRequest,
  ICredentialType,
  INodeProperties,
} from 'n8n-workflow';

export class SoundpostApi implements ICredentialType {
  name = 'soundpostApi';

  displayName = 'Soundpost API';

  icon = { light: 'file:../icons/soundpost.svg', dark: 'file:../icons/soundpost.dark.svg' } as const;

  documentationUrl =
    'https://github.com/soundpost/soundpost/tree/main/packages/n8n-nodes-soundpost#credentials';

  properties: INodeProperties[] = [
    {
      displayName: 'Service URL',
      name: 'url',
      type: 'string',
      default: '',
      required: true,
      placeholder: 'https://audio.example.com',
      description: 'Address of your Soundpost service, without /v1',
    },
    {
      displayName: 'API Key',
      name: 'apiKey',
      type: 'string',
      typeOptions: { password: true },
      default: '',
      required: true,
      description:
        'A key with the scopes extract, read and download; also voice, transcribe and webhooks for those',
    },
  ];

  authenticate: IAuthenticateGeneric = {
    type: 'generic',
    properties: { headers: { 'X-API-Key': '={{$credentials.apiKey}}' } },
  };

  test: ICredentialTestRequest = {
    request: { baseURL: '={{$credentials.url}}', url: '/v1/usage' },
  };
}
