import { expect, it } from 'vitest';
import { progressReport } from '../src/tool-output.ts';

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

it('of several works each fills its part, by its own length', () => {
  const fractions = reported(null, (report) => {
    report.part(0, 0.25, 10).phase(0, 1)(5);
    report.part(0.25, 0.75, 20).phase(0, 0.5)(20);
    report.part(0.75, 1, null).phase(0, 1)(20);
    report.done();
  });
  expect(fractions).toEqual([0.125, 0.5, 1]);
});
