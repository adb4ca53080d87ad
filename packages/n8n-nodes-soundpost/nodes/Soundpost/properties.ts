/** What the node shows: resources, operations and their fields. */
import type { IDisplayOptions, INodeProperties } from 'n8n-workflow';

const forJobs = (...operation: string[]): IDisplayOptions => ({ show: { resource: ['job'], operation } });
const MAKING = ['extract', 'probe', 'transcribe'];

const operations: INodeProperties[] = [
  {
    displayName: 'Resource',
    name: 'resource',
    type: 'options',
    noDataExpression: true,
    options: [
      { name: 'Job', value: 'job' },
      { name: 'Voice Message', value: 'voiceMessage' },
    ],
    default: 'job',
  },
  {
    displayName: 'Operation',
    name: 'operation',
    type: 'options',
    noDataExpression: true,
    displayOptions: { show: { resource: ['job'] } },
    options: [
      {
        name: 'Cancel or Erase',
        value: 'cancel',
        action: 'Cancel or erase a job',
        description: 'Cancel an unfinished job, or erase the files of a finished one',
      },
      {
        name: 'Download',
        value: 'download',
        action: 'Download a finished file',
        description: 'Get a finished file as binary data',
      },
      {
        name: 'Extract Audio',
        value: 'extract',
        action: 'Extract the audio of a video',
        description: 'Make an audio file from a video',
      },
      { name: 'Get', value: 'get', action: 'Get a job', description: 'Get a job in any state' },
      { name: 'Get Many', value: 'getAll', action: 'Get many jobs', description: 'List jobs, newest first' },
      {
        name: 'Probe',
        value: 'probe',
        action: 'See what is in a video',
        description: 'List the audio tracks of a video and its length',
      },
      {
        name: 'Retry',
        value: 'retry',
        action: 'Retry a failed job',
        description: 'Retry a failed job as a new job',
      },
      {
        name: 'Transcribe',
        value: 'transcribe',
        action: 'Transcribe a video',
        description: 'Write down what is said in a video',
      },
    ],
    default: 'extract',
  },
  {
    displayName: 'Operation',
    name: 'operation',
    type: 'options',
    noDataExpression: true,
    displayOptions: { show: { resource: ['voiceMessage'] } },
    options: [
      {
        name: 'Send',
        value: 'send',
        action: 'Send the result of a job as a voice message',
        description: 'Send the audio of a completed job into a chat',
      },
    ],
    default: 'send',
  },
];

const source: INodeProperties[] = [
  {
    displayName: 'Source',
    name: 'source',
    type: 'options',
    options: [
      { name: 'Binary Data', value: 'binary', description: 'A file of an earlier node' },
      { name: 'Upload', value: 'upload', description: 'A file that the service already has' },
      { name: 'URL', value: 'url' },
    ],
    default: 'url',
    displayOptions: forJobs(...MAKING),
  },
  {
    displayName: 'URL',
    name: 'url',
    type: 'string',
    default: '',
    required: true,
    placeholder: 'https://example.com/talk.mp4',
    description:
      'Address of the video, also of an HLS or DASH stream. Private addresses need OUTBOUND_ALLOW in the service.',
    displayOptions: { show: { resource: ['job'], operation: MAKING, source: ['url'] } },
  },
  {
    displayName: 'Input Data Field Name',
    name: 'binaryProperty',
    type: 'string',
    default: 'data',
    required: true,
    hint: 'The name of the input field that holds the video',
    displayOptions: { show: { resource: ['job'], operation: MAKING, source: ['binary'] } },
  },
  {
    displayName: 'Upload',
    name: 'upload',
    type: 'string',
    default: '',
    required: true,
    placeholder: 'upl_4f7c2a',
    displayOptions: { show: { resource: ['job'], operation: MAKING, source: ['upload'] } },
  },
];

const output: INodeProperties[] = [
  {
    displayName: 'Format',
    name: 'format',
    type: 'options',
    options: [
      { name: 'AAC', value: 'aac' },
      { name: 'FLAC', value: 'flac' },
      { name: 'M4A', value: 'm4a' },
      { name: 'M4B', value: 'm4b' },
      { name: 'MP3', value: 'mp3' },
      { name: 'Ogg Vorbis', value: 'ogg' },
      { name: 'Opus', value: 'opus' },
      { name: 'Voice Note', value: 'voice', description: 'As phones record it: Opus in mono' },
      { name: 'WAV', value: 'wav' },
    ],
    default: 'mp3',
    displayOptions: forJobs('extract'),
  },
  {
    displayName: 'Transcript Format',
    name: 'subtitles',
    type: 'options',
    options: [
      { name: 'JSON', value: 'json', description: 'Segments with their times' },
      { name: 'SubRip', value: 'srt' },
      { name: 'Text', value: 'txt', description: 'The words alone' },
      { name: 'WebVTT', value: 'vtt' },
    ],
    default: 'txt',
    displayOptions: forJobs('transcribe'),
  },
  {
    displayName: 'Wait for the End',
    name: 'wait',
    type: 'boolean',
    default: true,
    description:
      'Whether to wait for the job to end. Otherwise the node answers at once, and a Soundpost Trigger goes on with the job.',
    displayOptions: forJobs(...MAKING, 'retry'),
  },
  {
    displayName: 'Wait at Most (Minutes)',
    name: 'minutes',
    type: 'number',
    typeOptions: { minValue: 1, maxValue: 1440 },
    default: 30,
    displayOptions: { show: { resource: ['job'], operation: [...MAKING, 'retry'], wait: [true] } },
  },
  {
    displayName: 'Put Output File in Field',
    name: 'outputProperty',
    type: 'string',
    default: 'data',
    hint: 'The name of the output field that gets the file; empty for none',
    displayOptions: { show: { resource: ['job'], operation: ['extract', 'transcribe'], wait: [true] } },
  },
];

const options: INodeProperties = {
  displayName: 'Options',
  name: 'options',
  type: 'collection',
  placeholder: 'Add option',
  default: {},
  displayOptions: forJobs(...MAKING),
  options: [
    {
      displayName: 'Bitrate',
      name: 'bitrate',
      type: 'string',
      default: '',
      placeholder: '192k',
      displayOptions: { show: { '/operation': ['extract'] } },
    },
    {
      displayName: 'Channels',
      name: 'channels',
      type: 'options',
      options: [
        { name: 'Mono', value: 1 },
        { name: 'Stereo', value: 2 },
      ],
      default: 2,
      displayOptions: { show: { '/operation': ['extract'] } },
    },
    {
      displayName: 'Destination URL',
      name: 'destination',
      type: 'string',
      default: '',
      description: 'A presigned address that the service puts the file to, such as one of S3',
      displayOptions: { show: { '/operation': ['extract'] } },
    },
    {
      displayName: 'End (Seconds)',
      name: 'end',
      type: 'number',
      default: 0,
      description: 'Where the output ends in the source',
      displayOptions: { show: { '/operation': ['extract', 'transcribe'] } },
    },
    {
      displayName: 'File Name',
      name: 'filename',
      type: 'string',
      default: '',
      description: 'Without extension',
      displayOptions: { show: { '/operation': ['extract', 'transcribe'] } },
    },
    {
      displayName: 'Headers',
      name: 'headers',
      type: 'fixedCollection',
      typeOptions: { multipleValues: true },
      default: {},
      description: 'Sent to the URL of the source alone, such as Authorization',
      options: [
        {
          displayName: 'Header',
          name: 'header',
          values: [
            { displayName: 'Name', name: 'name', type: 'string', default: '' },
            {
              displayName: 'Value',
              name: 'value',
              type: 'string',
              typeOptions: { password: true },
              default: '',
            },
          ],
        },
      ],
    },
    {
      displayName: 'Language',
      name: 'language',
      type: 'string',
      default: '',
      placeholder: 'en',
      displayOptions: { show: { '/operation': ['transcribe'] } },
    },
    {
      displayName: 'Normalize Loudness',
      name: 'normalize',
      type: 'boolean',
      default: false,
      displayOptions: { show: { '/operation': ['extract'] } },
    },
    {
      displayName: 'Start (Seconds)',
      name: 'start',
      type: 'number',
      default: 0,
      description: 'Where the output begins in the source',
      displayOptions: { show: { '/operation': ['extract', 'transcribe'] } },
    },
    {
      displayName: 'Track',
      name: 'track',
      type: 'string',
      default: '',
      description: 'Index among the audio tracks from 0, a language such as en, or mix',
      displayOptions: { show: { '/operation': ['extract', 'transcribe'] } },
    },
    {
      displayName: 'Webhook URL',
      name: 'webhook',
      type: 'string',
      default: '',
      description: 'Address that is told how the job ended, such as the one of a Soundpost Trigger',
    },
  ],
};

const jobs: INodeProperties[] = [
  {
    displayName: 'Job ID',
    name: 'jobId',
    type: 'string',
    default: '',
    required: true,
    placeholder: 'job_7201399c37cec4b4',
    displayOptions: forJobs('get', 'cancel', 'retry', 'download'),
  },
  {
    displayName: 'Put Output File in Field',
    name: 'outputProperty',
    type: 'string',
    default: 'data',
    required: true,
    hint: 'The name of the output field that gets the file',
    displayOptions: forJobs('download'),
  },
  {
    displayName: 'Output Name',
    name: 'outputName',
    type: 'string',
    default: '',
    description: 'Which of several outputs; empty for the first',
    displayOptions: forJobs('download'),
  },
  {
    displayName: 'Return All',
    name: 'returnAll',
    type: 'boolean',
    default: false,
    description: 'Whether to return all results or only up to a given limit',
    displayOptions: forJobs('getAll'),
  },
  {
    displayName: 'Limit',
    name: 'limit',
    type: 'number',
    typeOptions: { minValue: 1 },
    default: 50,
    description: 'Max number of results to return',
    displayOptions: { show: { resource: ['job'], operation: ['getAll'], returnAll: [false] } },
  },
  {
    displayName: 'Status',
    name: 'status',
    type: 'options',
    options: [
      { name: 'Any', value: '' },
      { name: 'Completed', value: 'completed' },
      { name: 'Failed', value: 'failed' },
      { name: 'Processing', value: 'processing' },
      { name: 'Queued', value: 'queued' },
    ],
    default: '',
    displayOptions: forJobs('getAll'),
  },
];

const voiceMessage: INodeProperties[] = [
  {
    displayName: 'Job ID',
    name: 'jobId',
    type: 'string',
    default: '',
    required: true,
    placeholder: 'job_7201399c37cec4b4',
  },
  {
    displayName: 'Instance',
    name: 'instance',
    type: 'string',
    default: '',
    required: true,
    description: 'Name of the gateway instance that sends',
  },
  {
    displayName: 'Recipient',
    name: 'number',
    type: 'string',
    default: '',
    required: true,
    placeholder: '+12025550123',
    description: 'Number with country code, or the address of a chat',
  },
].map((property) => ({
  ...property,
  displayOptions: { show: { resource: ['voiceMessage'], operation: ['send'] } },
})) as INodeProperties[];

export const properties: INodeProperties[] = [
  ...operations,
  ...source,
  ...output,
  options,
  ...jobs,
  ...voiceMessage,
];
