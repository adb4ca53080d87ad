import { expect, it } from 'vitest';
import { until } from '../until.ts';
import { useService } from './api-fixture.ts';
import { Stream } from './event-stream.ts';

/** Nobody works here, so a job stays as it is. */
const service = useService({ parts: [] });

it('a quiet stream carries a comment each 15 s', async () => {
  const source = { type: 'url', url: `http://127.0.0.1:${service().outside.port}/a.mp4` };
  const jobId = await service().submit({ source, output: { format: 'mp3' } });
  const stream = await Stream.open(jobId, service());
  await until('the first comment', () => stream.comments > 0);
  expect(stream.events.map(({ data }) => data.status)).toEqual(['queued']);
  stream.close();
});
