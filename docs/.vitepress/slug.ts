/** The anchor that a Git host gives a heading: lower case, punctuation dropped, spaces to hyphens. The site gives the same one. */
export function slug(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');
}
