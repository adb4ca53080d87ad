/** How large the house may be, and that the page of one job's files is true. Raising a ceiling takes a sentence in the commit. */
import { expect, it } from 'vitest';
import { type Figures, figuresOf } from '../../script/house-figures.ts';
import { walkOfJob, walkOfPage } from '../../script/job-walk.ts';
import { projectFolder } from './planted-tree.ts';

const ceilings: Figures = {
  files: 541,
  lines: 78_650,
  linesOfLargestPart: 16_945,
  exportedTypeNames: 606,
  linesOfLongestFunction: 85,
  longCommentLines: 0,
  packages: 256,
};

it('the house is no larger than it was', () => {
  const figures = figuresOf(projectFolder);
  const above = Object.entries(ceilings).filter(
    ([name, ceiling]) => figures[name as keyof Figures] > ceiling,
  );
  expect(above, JSON.stringify(figures)).toEqual([]);
});

it('one job runs the files that docs/architecture.md lists, and loads no more than before', async () => {
  const { loaded, ran } = await walkOfJob(projectFolder);
  expect(ran.map(({ file }) => file).sort()).toEqual(walkOfPage().sort());
  expect(ran.length).toBeLessThanOrEqual(133);
  expect(loaded.length).toBeLessThanOrEqual(320);
});
