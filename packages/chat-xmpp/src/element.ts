/** XML of stanzas: `xml` makes it, the rest reads it. Received stanzas may lack anything. */
import { xml } from '@xmpp/client';
import { ns } from './namespaces.ts';

export { xml };
export type Element = ReturnType<typeof xml>;

/** Undefined if the attribute is missing or empty. */
export function attribute(element: Element | undefined, name: string): string | undefined {
  const value: unknown = element?.attrs[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** The text of the only child with this name; undefined if it is missing or empty. */
export function childText(
  element: Element | undefined,
  name: string,
  namespace?: string,
): string | undefined {
  const text = element?.getChild(name, namespace)?.getText();
  return text === undefined || text === '' ? undefined : text;
}

/** Children in a namespace, by any name. */
export function childrenIn(element: Element, namespace: string): Element[] {
  return element.getChildElements().filter((child) => child.getNS() === namespace);
}

/** XEP-0426: positions in a body count code points, not UTF-16 units. */
export function lengthOf(text: string): number {
  return [...text].length;
}

// Data forms (XEP-0004): read as values by field, sent as answers.

type FormValues = ReadonlyMap<string, readonly string[]>;

export function readForm(form: Element | undefined): FormValues {
  const fields = form?.getChildren('field') ?? [];
  return new Map(
    fields.map((field) => [
      String(field.attrs.var),
      field.getChildren('value').map((value) => value.getText()),
    ]),
  );
}

/** @param changes replace or add to `values`: a form must be sent back with all its fields */
export function submission(values: FormValues, changes: Readonly<Record<string, string>>): Element {
  const all = new Map<string, readonly string[]>(values);
  for (const [name, value] of Object.entries(changes)) {
    all.set(name, [value]);
  }
  const fields = [...all].map(([name, found]) =>
    xml('field', { var: name }, ...found.map((value) => xml('value', {}, value))),
  );
  return xml('x', { xmlns: ns.form, type: 'submit' }, ...fields);
}
