/** What a key may look like, whatever storage it is for. */

/**
 * The key as it is. A key is made of plain segments, so that none leads outside a folder or to a hidden file, and none has to be encoded in a URL.
 * @throws Error when it is none
 */
export function checkedKey(key: string): string {
  const plain = key.split('/').every((segment) => /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}$/.test(segment));
  if (!plain || key.length > 900) {
    throw new Error(
      `"${key}" is no storage key: segments of A-Z a-z 0-9 . _ - with / between, none beginning with a dot`,
    );
  }
  return key;
}
