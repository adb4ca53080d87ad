import { expect, it } from 'vitest';
import { progressReport } from '../../src/media/progress.ts';

function reported(
  expectedSeconds: number | null,
  use: (report: ReturnType<typeof progressReport>) => void,
): number[] {
  const fractions: number[] = [];
  use(progressReport(expectedSeconds, (fraction) => fractions.push(fraction)));
  return fractions;
}

it('never goes back, neither within a run nor from one to the next', () => {
  const fractions = reported(10, (report) => {
    const first = report.phase(0, 0.5);
    first(4);
    first(2);
    first(10);
    report.phase(0.4, 0.9)(1);
    report.phase(0.5, 1)(5);
  });
  expect(fractions).toEqual([0.2, 0.5, 0.75]);
});

it('ends at 1, also where the audio is longer than was said or of no known length', () => {
  expect(reported(10, (report) => report.phase(0, 0.9)(500))).toEqual([0.9]);
  expect(
    reported(null, (report) => {
      report.phase(0, 1)(5);
      report.done();
    }),
  ).toEqual([1]);
  expect(reported(0, (report) => report.phase(0, 1)(0))).toEqual([]);
});
