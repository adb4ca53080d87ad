/** Modules that few places may import, which are regular expressions: what opens sockets, starts programs or knows the queue has one owner. */
export const owners: Readonly<Record<string, readonly string[]>> = {
  child_process: [
    'packages/media/src/(tool-process|starter|reading/reader)\\.ts',
    'packages/kit/src/redis/embedded\\.ts',
  ],
  bullmq: ['src/jobs/', 'src/followups/'],
  // Outbound opens sockets; the others look at addresses, listen, or are clients of configured services.
  net: [
    'packages/outbound/',
    'packages/kit/src/(http/|observe/metrics/server\\.ts|storage/s3-bucket\\.ts)',
    'src/(api/app|gateway/start)\\.ts',
    'src/cli/',
  ],
  // The clients of the gateway and of the transcriber talk to addresses of the operator's.
  undici: [
    'packages/outbound/',
    'src/followups/kinds/gateway-client\\.ts',
    'src/followups/transcripts/client\\.ts',
  ],
};
