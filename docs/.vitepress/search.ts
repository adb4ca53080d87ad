/** What the site's search finds, and in which order. */
import type { DefaultTheme } from 'vitepress';

/** The design and its history: for those who work on Soundpost, so the search leaves it out. */
export const isDesign = (page: string): boolean => /^docs\/(decisions\/|architecture\.md$)/.test(page);

/** @param id address of a section, such as `/how-to/uploads.html#in-chunks` */
function boostDocument(id: string, _term: string, stored: Record<string, unknown> = {}): number {
  const isTitle = Array.isArray(stored.titles) && stored.titles.length === 0;
  return (isTitle ? 2 : 1) * (id.startsWith('/how-to/') ? 1.5 : 1);
}

/** A heading counts more than a paragraph, and the title of a page most. */
export const searchOptions = {
  fuzzy: 0.2,
  prefix: true,
  combineWith: 'AND',
  boost: { title: 6, titles: 2, text: 1 },
  boostDocument,
} satisfies NonNullable<DefaultTheme.LocalSearchOptions['miniSearch']>['searchOptions'];

export const search = {
  provider: 'local',
  options: {
    miniSearch: { searchOptions },
    _render: (source, env, md) => (isDesign(env.relativePath) ? '' : md.renderAsync(source, env)),
  },
} satisfies DefaultTheme.Config['search'];
