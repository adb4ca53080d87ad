/** XML of stanzas: made by `xml`, read by the rest. What comes from the network may lack anything. */
import { xml } from '@xmpp/client';

export { xml };
export type Element = ReturnType<typeof xml>;

/** Undefined for an attribute that is missing or empty. */
export function attribute(element: Element | undefined, name: string): string | undefined {
  const value: unknown = element?.attrs[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** The text of the only child of that name; undefined where there is none or it is empty. */
export function childText(
  element: Element | undefined,
  name: string,
  namespace?: string,
): string | undefined {
  const text = element?.getChild(name, namespace)?.getText();
  return text === undefined || text === '' ? undefined : text;
}

/** Children in a namespace, whatever they are called. */
export function childrenIn(element: Element, namespace: string): Element[] {
  return element.getChildElements().filter((child) => child.getNS() === namespace);
}

/** XEP-0426: positions in a body count code points, not UTF-16 units. */
export function lengthOf(text: string): number {
  return [...text].length;
}
