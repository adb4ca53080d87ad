/** Data forms (XEP-0004): read as values by field, sent as answers. */
import { type Element, xml } from './element.ts';
import { ns } from './namespaces.ts';

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

/** @param changes replace or add to `values`, which a form that was received has to be answered with as a whole */
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
