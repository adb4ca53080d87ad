/** The page at /docs in a browser. */
import { expect, it } from 'vitest';
import { lookAtReference } from '../reference-page.ts';
import { useService } from './api-fixture.ts';

const service = useService({ parts: [] });

it.each([
  ['a phone', { width: 390, height: 844 }],
  ['a desk', { width: 1280, height: 900 }],
])(
  'shows on %s what there is, asks nobody else and breaks no policy',
  async (device, viewport) => {
    const { body } = await service().call('GET', '/openapi.json', { key: null });
    const summaries = Object.values<Record<string, { summary?: string }>>(body.paths)
      .flatMap((item) => Object.values(item))
      .flatMap(({ summary }) => summary ?? []);
    expect(summaries.length).toBeGreaterThan(20);
    const errors = ['INVALID_REQUEST', 'Fix the fields that details lists.'];
    // On a phone the list of operations is folded away.
    const awaited = device === 'a desk' ? [...summaries, ...errors] : errors;
    const seen = await lookAtReference(`${service().url}/docs`, viewport, awaited);
    expect(seen.complaints).toEqual([]);
    expect(seen.origins).toEqual([new URL(service().url).origin]);
    expect(seen.width).toBe(viewport.width);
  },
  120_000,
);
